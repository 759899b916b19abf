/* The tiers of this machine, and a block of memory in each: where its pages are, by what the kernel says.
 *
 *   cc tiers.c -o tiers $(pkg-config --cflags --libs memtide) && ./tiers
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memtide/memtide.h>

enum { kSize = 4 << 20 };

/* The NUMA node that an address is on; below 0: an errno, negative. */
static int node_of(void *address) {
    int node = -ENOENT;
    if (syscall(SYS_move_pages, 0, 1UL, &address, NULL, &node, 0) != 0) return -errno;
    return node;
}

static void show(const char *heap) {
    char *block = memtide_malloc(heap, kSize);
    if (block == NULL) {
        printf("%-12s %s: %s\n", heap, strerror(errno), memtide_error());
        return;
    }
    memset(block, 1, kSize); /* pages come when they are touched */
    printf("%-12s %d MiB at %p, node %d\n", heap, kSize >> 20, (void *)block, node_of(block + kSize / 2));
    memtide_free(block);
}

int main(void) {
    struct memtide_tier tier;
    unsigned count = 0;
    for (; memtide_tier_at(count, &tier) == 0; ++count) {
        printf("tier %u is %s: %llu MiB, %llu free\n", count, tier.name, tier.capacity >> 20, tier.free >> 20);
        show(tier.name);
    }
    if (count == 0) {
        fprintf(stderr, "no tiers: %s\n", memtide_error());
        return EXIT_FAILURE;
    }
    show("any");

    /* What is kept for later, and seldom read: the agent may move it to slower memory at once. */
    char *archive = memtide_malloc("any", kSize);
    if (archive == NULL || memtide_hint(archive, kSize, MEMTIDE_COLD) != 0) {
        fprintf(stderr, "%s\n", memtide_error());
        return EXIT_FAILURE;
    }
    memset(archive, 2, kSize);
    memtide_free(archive); /* takes the hint back, too */
    return EXIT_SUCCESS;
}

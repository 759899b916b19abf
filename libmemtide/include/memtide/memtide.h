/* libmemtide: memory on a named tier, memory that spans tiers, and hints to the tiering agent.
 *
 * A *tier* is a group of NUMA nodes that are about equally fast: "fast" and "slow", or as the configuration
 * of memtide-tiering-agent names them (docs/libmemtide.md). Sizes are in bytes.
 *
 * Errors: functions that return a pointer return NULL, those that return an int return -1, and errno says
 * why; memtide_error() has a sentence for people.
 *
 * Threads and fork: every function may be called by any thread at any time, but not from a signal handler. A
 * child of fork(2) has its own copy of all heaps and hints.
 */
#ifndef MEMTIDE_MEMTIDE_H
#define MEMTIDE_MEMTIDE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- Heaps ---
 *
 * The name of a heap is one of
 *
 * - "TIER": memory of that tier and of no other: its pages are bound to its nodes (mbind(2), MPOL_BIND).
 *   When the tier has no room, allocating fails with ENOMEM.
 * - "TIER,any": memory of that tier as long as it has room, else of any other (MPOL_PREFERRED_MANY).
 * - "any": memory that spans all tiers: new pages come from where the kernel takes them (near the
 *   processor, then further away), and the agent moves them by how warm they are, and as hints say.
 *
 * What is in the first two stays where it is: the agent never moves memory that has a policy of its own.
 *
 * Memory is taken from a node when a page is first written to, as with malloc. ENOMEM is told when memory is
 * handed out, by what the tier has free then (page cache that can be given up counts as free). What other
 * processes take between that and the first touch is not known then; a tier that is overcommitted in this way
 * meets the kernel's OOM killer, as any bound memory does.
 *
 * Errors of all that take the name of a heap: EINVAL no such tier; ENODEV the tier has no memory now; ENOMEM;
 * ENOTSUP libmemkind.so.0 is not installed; E2BIG more than 32 different names of heaps.
 */

/* As malloc(3), aligned for any type. A `size` of 0 is as 1. */
void* memtide_malloc(const char* heap, size_t size);

/* As calloc(3): zeroed. ENOMEM also when count * size overflows. */
void* memtide_calloc(const char* heap, size_t count, size_t size);

/* As aligned_alloc(3): `alignment` is a power of two, else EINVAL; `size` need not be a multiple of it. */
void* memtide_aligned_alloc(const char* heap, size_t alignment, size_t size);

/* As realloc(3); `pointer` is NULL, or memory of any heap of this library, and is untouched on failure. With
 * `heap` NULL it stays in the heap that it is of (EINVAL when `pointer` is NULL, too); with another heap it
 * moves there. A `size` of 0 is as 1: nothing is freed. Alignment beyond that of malloc is not kept. */
void* memtide_realloc(const char* heap, void* pointer, size_t size);

/* Memory of any heap of this library, or NULL. Takes hints on it back. Blocks of 1 MiB and more give their
 * pages back to the system at once; smaller ones are kept for what is allocated next. Does not change errno.
 */
void memtide_free(void* pointer);

/* What can be used of a block: at least what was asked for. 0 for NULL. */
size_t memtide_usable_size(const void* pointer);

/* The same heaps by handle, which saves looking the name up. Handles are valid for ever. */
typedef struct memtide_heap memtide_heap;

memtide_heap* memtide_heap_open(const char* heap);
/* `alignment` as for memtide_aligned_alloc(), or 0: for any type. */
void* memtide_heap_alloc(memtide_heap* heap, size_t alignment, size_t size);

/* --- Tiers --- */

struct memtide_tier {
    char name[64];
    unsigned long long capacity; /* bytes; 0 while none of its nodes is there */
    unsigned long long free;     /* bytes that a heap of this tier could get now */
};

/* The tier of that position, 0 being the fastest, as things are now. ENOENT when there are not so many. Reads
 * a few files. */
int memtide_tier_at(unsigned position, struct memtide_tier* tier);

/* --- Hints --- */

enum memtide_hint_kind {
    MEMTIDE_NORMAL = 0, /* no hint: how often it is touched decides */
    MEMTIDE_HOT = 1,    /* wanted in the fastest tier, as though it were touched all the time */
    MEMTIDE_COLD = 2,   /* the first to leave it, and never brought back */
    MEMTIDE_PIN = 3     /* as hot, and once in the fastest tier it stays there */
};

/* Says something of `length` bytes of this process's memory, from malloc, mmap or a heap of this library;
 * what was said of them before is forgotten. 0, or -1. The agent moves whole pages: hot and pin take in the
 * pages of which the range has a part, cold those that it covers, normal as hot.
 *
 * A hint is for addresses, and ends with MEMTIDE_NORMAL, with memtide_free() of that memory, or with the
 * process (also by execve(2)). Take it back before memory from elsewhere is freed or unmapped, or it will
 * hold for what comes to lie there next.
 *
 * It is a wish: an agent that runs sees it within seconds and obeys within the limits of docs/tiering.md
 * ("Hints"); without one, nothing happens. Memory in heaps of a named tier, locked, or with a memory policy
 * is not moved whatever the hint.
 *
 * EINVAL: no such kind, or addresses that wrap around. ENOSPC: more than 65,534 separate ranges. ENOMEM.
 * Others of memfd_create(2) and mmap(2). */
int memtide_hint(const void* address, size_t length, int kind);

/* --- */

/* What the last failed call of this thread failed for, a sentence; "" before any. Valid until its next
 * failure. */
const char* memtide_error(void);

/* "0.1.0" */
const char* memtide_version(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

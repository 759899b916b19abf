// What a program sees of libmemtide on a machine with two tiers, with an agent beside it: memory of a heap is
// where the heap says, and what it says of its memory is obeyed. Prints what it finds, ends with 0 when that
// is right.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <memtide/memory_resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kStretch = 8 * kMiB;

void fail(const char* what) {
    std::printf("FAILED: %s (%s)\n", what, memtide_error());
    std::exit(1);
}

// Of the whole pages of a range, how many are on each of two nodes: what the kernel says.
struct Where {
    std::size_t fast = 0;
    std::size_t slow = 0;
    std::size_t nowhere = 0;
};
Where where(const char* begin, std::size_t size) {
    const char* const end = begin + size;
    begin += (kPage - reinterpret_cast<std::uintptr_t>(begin) % kPage) % kPage;
    std::vector<void*> pages;
    for (; begin + kPage <= end; begin += kPage) pages.push_back(const_cast<char*>(begin));
    std::vector<int> nodes(pages.size(), -1);
    if (::syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) != 0)
        fail("move_pages");
    Where found;
    for (const int node : nodes) ++(node == 0 ? found.fast : node == 1 ? found.slow : found.nowhere);
    return found;
}
void show(const char* what, const Where& found) {
    std::printf("%s: %zu pages fast, %zu slow, %zu nowhere\n", what, found.fast, found.slow, found.nowhere);
    std::fflush(stdout);
}

void heaps_are_where_they_say() {
    memtide_tier fast{};
    memtide_tier slow{};
    if (memtide_tier_at(0, &fast) != 0 || memtide_tier_at(1, &slow) != 0) fail("two tiers");
    std::printf("tiers: %s %llu, %s %llu\n", fast.name, fast.free, slow.name, slow.free);
    for (const bool is_fast : {true, false}) {
        const memtide_tier& tier = is_fast ? fast : slow;
        auto* const memory = static_cast<char*>(memtide_malloc(tier.name, 8 * kMiB));
        if (memory == nullptr) fail("memory of a tier");
        std::memset(memory, 1, 8 * kMiB);
        const Where found = where(memory, 8 * kMiB);
        show(tier.name, found);
        if ((is_fast ? found.fast : found.slow) < 2047) fail("it is on another tier");
        memtide_free(memory);
    }
    // More than there is: an error, and no OOM killer.
    errno = 0;
    std::vector<void*> blocks;
    while (void* const block = memtide_malloc(slow.name, 16 * kMiB)) {
        std::memset(block, 1, 16 * kMiB);
        blocks.push_back(block);
    }
    std::printf("slow is full at %zu MiB: %s\n", blocks.size() * 16, memtide_error());
    if (errno != ENOMEM || blocks.size() * 16 * kMiB < slow.free / 2) fail("a full tier");
    for (void* const block : blocks) memtide_free(block);
}

// A stretch of memory that is on one tier as a whole.
char* find_stretch(char* begin, std::size_t size, bool fast, const char* not_at) {
    for (char* at = begin; at + kStretch <= begin + size; at += kMiB) {
        if (not_at != nullptr && at < not_at + kStretch && not_at < at + kStretch) continue;
        const Where found = where(at, kStretch);
        if ((fast ? found.fast : found.slow) >= kStretch / kPage - 1) return at;
    }
    fail("no stretch of memory on one tier");
    return nullptr;
}

void hints_are_obeyed() {
    // The first block is fast, having room. Then the fast tier is filled with what the agent does not look
    // at, being bound, which leaves it less to do; so the second is slow for the most part.
    constexpr std::size_t kFirst = 40 * kMiB;
    constexpr std::size_t kSecond = 80 * kMiB;
    auto* const first = static_cast<char*>(memtide_malloc("any", kFirst));
    if (first == nullptr) fail("memory of any tier");
    std::memset(first, 1, kFirst);
    while (void* const ballast = memtide_malloc("fast", 4 * kMiB)) std::memset(ballast, 1, 4 * kMiB);
    auto* const second = static_cast<char*>(memtide_malloc("any", kSecond));
    if (second == nullptr) fail("memory of any tier");
    std::memset(second, 1, kSecond);
    show("first", where(first, kFirst));
    show("second", where(second, kSecond));
    char* const hot = find_stretch(second, kSecond, false, nullptr);
    char* const cold = find_stretch(first, kFirst, true, nullptr);
    char* const pinned = find_stretch(first, kFirst, true, cold);
    if (memtide_hint(hot, kStretch, MEMTIDE_HOT) != 0 || memtide_hint(cold, kStretch, MEMTIDE_COLD) != 0 ||
        memtide_hint(pinned, kStretch, MEMTIDE_PIN) != 0)
        fail("hints");
    const std::size_t most = kStretch / kPage * 95 / 100;
    for (int passed = 0; passed < 120; ++passed) {
        // Against what is said: the cold is touched all the time, the hot and the pinned never.
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (std::chrono::steady_clock::now() < until)
            for (std::size_t at = 0; at < kStretch; at += kPage) ++cold[at];
        if (passed % 5 != 4) continue;
        const Where now_hot = where(hot, kStretch);
        const Where now_cold = where(cold, kStretch);
        const Where now_pinned = where(pinned, kStretch);
        std::printf("after %d s ", passed + 1);
        show("hot", now_hot);
        show("  cold", now_cold);
        show("  pinned", now_pinned);
        // Some of what is pinned now may have gone down before that was known.
        if (now_hot.fast >= most && now_cold.slow >= most && now_pinned.fast >= most) return;
    }
    fail("hints are not obeyed");
}

}  // namespace

int main() {
    heaps_are_where_they_say();
    hints_are_obeyed();
    std::printf("all is as it should be\n");
    return 0;
}

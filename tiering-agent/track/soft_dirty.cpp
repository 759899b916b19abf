#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tiering-agent/track/marked_pages.h"
#include "tiering-agent/track/page_map.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

class SoftDirtyTracker final : public Tracker {
  public:
    SoftDirtyTracker(Files& files, MarkedPages pages, std::chrono::nanoseconds touch_cost)
        : files_(files), pages_(std::move(pages)), touch_cost_(touch_cost) {}

    [[nodiscard]] std::string_view name() const override { return "soft-dirty"; }
    [[nodiscard]] std::string_view sees() const override { return "writes"; }
    [[nodiscard]] bool ranks_huge_pages() const override { return pages_.ranks_huge_pages(); }
    Result<> refresh() override { return pages_.refresh(); }

    Result<> begin(int pid, const WindowWish& wish) override {
        constexpr std::string_view kClearSoftDirty = "4";
        pages_.begin(pid, wish);
        return files_.write(fmt::format("proc/{}/clear_refs", pid), kClearSoftDirty);
    }
    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        auto look = pages_.look(pid, ranges, tiers, visit);
        if (!look) return look;
        look->touch_cost = touch_cost_;
        look->sees_reads = false;
        return look;
    }

  private:
    Files& files_;
    MarkedPages pages_;
    std::chrono::nanoseconds touch_cost_;
};

template <typename Action>
std::chrono::nanoseconds timed(Action&& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::steady_clock::now() - start;
}

// Pages of this process tell: clean when the bits were cleared, dirty when they were written to since, and
// how long such a write takes.
Result<std::chrono::nanoseconds> try_soft_dirty(Files& files) {
    constexpr std::size_t kPages = 64;
    constexpr std::size_t kSize = kPages << kPageShift;
    const auto unmap = [](void* memory) { ::munmap(memory, kSize); };
    void* const mapped = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return fail_errno("map", "some pages", errno);
    const std::unique_ptr<void, decltype(unmap)> memory(mapped, unmap);
    const auto write_all = [&] {
        for (std::size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(mapped)[i << kPageShift] = 1;
    };
    write_all();
    const int self = ::getpid();
    const std::string clear_refs = fmt::format("proc/{}/clear_refs", self);
    if (auto cleared = files.write(clear_refs, "4"); !cleared) return std::unexpected(cleared.error());
    auto map = PageMap::open(files, self);
    if (!map) return std::unexpected(map.error());
    const auto dirty = [&]() -> Result<std::size_t> {
        const auto words = map->read(reinterpret_cast<std::uint64_t>(mapped) >> kPageShift, kPages);
        if (!words) return std::unexpected(words.error());
        return static_cast<std::size_t>(std::ranges::count_if(*words, &PageMapEntry::is_soft_dirty));
    };
    const auto before = dirty();
    if (!before) return std::unexpected(before.error());
    const auto first = timed(write_all);
    const auto after = dirty();
    if (!after) return std::unexpected(after.error());
    if (*before != 0 || *after != kPages)
        return fail(ErrorCode::kUnavailable, "this kernel keeps no soft-dirty bits (CONFIG_MEM_SOFT_DIRTY)");
    // Others may have had the processor meanwhile: the shortest of some times is what it takes.
    constexpr int kTimes = 8;
    std::chrono::nanoseconds shortest = first;
    for (int i = 0; i < kTimes; ++i) {
        if (auto cleared = files.write(clear_refs, "4"); !cleared) return std::unexpected(cleared.error());
        shortest = std::min(shortest, timed(write_all));
    }
    return shortest / kPages;
}

}  // namespace

Result<std::unique_ptr<Tracker>> make_soft_dirty_tracker(Files& files) {
    const auto touch_cost = try_soft_dirty(files);
    if (!touch_cost) return std::unexpected(touch_cost.error());
    auto pages = MarkedPages::make(files, [](PageMapEntry word) { return word.is_soft_dirty(); });
    if (!pages) return std::unexpected(pages.error());
    return std::make_unique<SoftDirtyTracker>(files, *std::move(pages), *touch_cost);
}

}  // namespace memtide::agent

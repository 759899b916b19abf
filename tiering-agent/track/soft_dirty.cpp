#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "tiering-agent/track/marked_pages.h"
#include "tiering-agent/track/page_map.h"
#include "tiering-agent/track/tracker.h"
#include "tiering-agent/track/trial_pages.h"

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

// Pages of this process tell: clean when the bits were cleared, dirty when they were written to since, and
// how long such a write takes.
Result<std::chrono::nanoseconds> try_soft_dirty(Files& files) {
    auto pages = TrialPages::map();
    if (!pages) return std::unexpected(pages.error());
    pages->write_all();
    const std::string clear_refs = fmt::format("proc/{}/clear_refs", ::getpid());
    if (auto cleared = files.write(clear_refs, "4"); !cleared) return std::unexpected(cleared.error());
    const auto before = pages->count(files, &PageMapEntry::is_soft_dirty);
    if (!before) return std::unexpected(before.error());
    const auto first = pages->write_all();
    const auto after = pages->count(files, &PageMapEntry::is_soft_dirty);
    if (!after) return std::unexpected(after.error());
    if (*before != 0 || *after != TrialPages::kCount)
        return fail(ErrorCode::kUnavailable, "this kernel keeps no soft-dirty bits (CONFIG_MEM_SOFT_DIRTY)");
    // Others may have had the processor meanwhile: the shortest of some times is what it takes.
    constexpr int kTimes = 8;
    std::chrono::nanoseconds shortest = first;
    for (int i = 0; i < kTimes; ++i) {
        if (auto cleared = files.write(clear_refs, "4"); !cleared) return std::unexpected(cleared.error());
        shortest = std::min(shortest, pages->write_all());
    }
    return shortest / TrialPages::kCount;
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

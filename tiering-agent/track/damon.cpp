#include <algorithm>
#include <utility>

#include "tiering-agent/track/damon_monitors.h"
#include "tiering-agent/track/page_looker.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The kernel takes some 100 bytes for each, and 128 for its events.
constexpr std::uint64_t kMostRegions = 1 << 16;
constexpr std::uint64_t kLeastRegions = 64;
// Half a huge page: its middle is then in a region that is all its own.
constexpr std::uint64_t kPagesPerRegionOfHuge = kPagesPerHuge / 2;
// What a look costs is shared by so many windows, and by more where pages are few and windows short.
constexpr unsigned kLeastWindows = 4;
constexpr unsigned kMostWindows = 32;
constexpr milliseconds kLongestOfShort{200};

class DamonTracker final : public Tracker, public Sentinel {
  public:
    DamonTracker(DamonMonitors monitors, PageLooker looker)
        : monitors_(std::move(monitors)), looker_(std::move(looker)) {}

    [[nodiscard]] std::string_view name() const override { return "damon"; }
    [[nodiscard]] std::string_view sees() const override { return "reads and writes"; }
    microseconds take_kernel_time() override { return std::exchange(kernel_time_, {}); }
    [[nodiscard]] Sentinel* sentinel() override { return this; }
    // Each region is checked as long after it was prepared as any other.
    [[nodiscard]] bool is_sharp() const override { return true; }
    Result<> refresh() override { return looker_.refresh(); }
    [[nodiscard]] std::size_t most_at_once() const override { return DamonMonitors::kMost; }
    [[nodiscard]] milliseconds duration(milliseconds) const override { return monitors_.duration(); }

    Result<> begin(int pid, const WindowWish& wish) override {
        const std::uint64_t regions = regions_for(wish);
        return monitors_.begin(pid, {.window = std::max(wish.length, milliseconds(1)),
                                     .windows = windows_for(wish, regions),
                                     .regions = regions});
    }

    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        auto seen = monitors_.end(pid);
        if (!seen) return std::unexpected(seen.error());
        kernel_time_ += seen->kernel_time;
        RegionCursor cursor(seen->regions);
        const PageLooker::Ask ask = [&](std::uint64_t first, std::uint64_t count, PageMapEntry) {
            const DamonRegion* const region = cursor.find(first + count / 2);
            if (region == nullptr) return Touches{.touched = 0, .windows = 0};
            return Touches{.touched = static_cast<std::uint8_t>(std::min(region->accesses, seen->windows)),
                           .windows = static_cast<std::uint8_t>(seen->windows)};
        };
        return looker_.look(pid, ranges, tiers, ask, visit);
    }

    Result<> glance(int pid, const WindowWish& wish) override {
        return monitors_.begin(pid, {.window = std::max(wish.length, milliseconds(1)),
                                     .windows = kLeastWindows,
                                     .regions = most_regions(wish, kLeastWindows)});
    }
    [[nodiscard]] milliseconds glance_duration() const override { return monitors_.duration(); }
    Result<Glance> end_glance(int pid) override {
        auto seen = monitors_.end(pid);
        if (!seen) return std::unexpected(seen.error());
        kernel_time_ += seen->kernel_time;
        return Glance{.regions = std::move(seen->regions), .windows = seen->windows};
    }

  private:
    // No more than are gone over in the time that a window lasts, and with the budget there is.
    [[nodiscard]] std::uint64_t most_regions(const WindowWish& wish, unsigned windows) const {
        const auto in_time = [&](nanoseconds time, unsigned passes) {
            return static_cast<std::uint64_t>(double(time.count()) / (monitors_.region_cost() * passes));
        };
        return std::clamp(std::min(in_time(wish.length, 1), in_time(wish.budget, 2 * windows + 1)),
                          kLeastRegions, kMostRegions);
    }

    // One for each page or half of a huge one. Where that is too many their borders lie elsewhere each time,
    // so that in the end what is warm in a large region comes out, and what is not.
    std::uint64_t regions_for(const WindowWish& wish) {
        constexpr unsigned kJitter = 8;
        const std::uint64_t wanted = std::max(
            wish.mostly_huge ? wish.area_pages / kPagesPerRegionOfHuge : wish.area_pages, kLeastRegions);
        const std::uint64_t most = most_regions(wish, kLeastWindows);
        if (most >= wanted) return wanted;
        return std::max(most - most * (begun_++ % kJitter) / (4 * kJitter), kLeastRegions);
    }

    // Each window goes into the heat of each page: many are for huge ones alone.
    [[nodiscard]] unsigned windows_for(const WindowWish& wish, std::uint64_t regions) const {
        if (!wish.mostly_huge || wish.length <= milliseconds(0)) return kLeastWindows;
        const auto in_budget = static_cast<unsigned>(double(nanoseconds(wish.budget).count()) /
                                                     (2 * double(regions) * monitors_.region_cost()));
        const auto in_time = static_cast<unsigned>(kLongestOfShort / wish.length);
        return std::clamp(std::min(in_budget, in_time), kLeastWindows, kMostWindows);
    }

    DamonMonitors monitors_;
    PageLooker looker_;
    microseconds kernel_time_{0};
    unsigned begun_ = 0;
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_damon_tracker(Files& files) {
    auto looker = PageLooker::make(files);
    if (!looker) return std::unexpected(looker.error());
    auto monitors = DamonMonitors::claim(files);
    if (!monitors) return std::unexpected(monitors.error());
    return std::make_unique<DamonTracker>(*std::move(monitors), *std::move(looker));
}

}  // namespace memtide::agent

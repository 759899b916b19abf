#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_set>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/track/first_touches.h"
#include "tiering-agent/track/page_looker.h"

namespace memtide::agent {

// What is common to ways in which the page map tells for each page whether it was touched since pages were
// marked, and in which the first touch of each costs a page fault. Of processes of mostly huge pages, all of
// which are touched within a millisecond, the order of these faults counts, where there are perf events. Not
// thread safe.
class MarkedPages {
  public:
    using IsTouched = bool (*)(PageMapEntry);
    // kUnavailable on a kernel without memory blocks.
    static Result<MarkedPages> make(Files& files, IsTouched is_touched);

    Result<> refresh() { return looker_.refresh(); }
    [[nodiscard]] bool ranks_huge_pages() const { return first_.has_value(); }
    // Before pages are marked.
    void begin(int pid, const WindowWish& wish);
    // As of Tracker, without the cost of a touch.
    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Tracker::Visit& visit);

  private:
    MarkedPages(PageLooker looker, std::optional<FirstTouches> first, IsTouched is_touched)
        : looker_(std::move(looker)), first_(std::move(first)), is_touched_(is_touched) {}
    Result<Look> look_at_all(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                             const Tracker::Visit& visit);
    Result<Look> look_at_first(int pid, std::uint64_t most_pages, std::span<const VirtualRange> ranges,
                               const TierOfNode& tiers, const Tracker::Visit& visit);

    PageLooker looker_;
    std::optional<FirstTouches> first_;
    IsTouched is_touched_;
    // Of processes whose first touches count in this window, by pid.
    std::map<int, std::uint64_t> most_pages_;
    // Their groups that had small pages, touched ones, in the last look.
    std::map<int, std::unordered_set<std::uint64_t>> small_;
};

}  // namespace memtide::agent

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/track/page_map.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {

// In how many of how many windows a page was touched.
struct Touches {
    std::uint8_t touched = 0;
    std::uint8_t windows = 1;
};

// Where the pages of a process are, page by page, joined with what a tracker knows of each. Not thread safe.
class PageLooker {
  public:
    // Asked for so many pages, one or a huge page, by ascending page number. `word` is of one of them.
    using Ask = std::function<Touches(std::uint64_t first, std::uint64_t count, PageMapEntry word)>;

    // kUnavailable on a kernel without memory blocks.
    static Result<PageLooker> make(Files& files);
    Result<> refresh();  // memory has come or gone

    // As Tracker::look().
    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers, const Ask& ask,
                      const Tracker::Visit& visit);

  private:
    PageLooker(Files& files, FrameNodes nodes) : files_(&files), nodes_(std::move(nodes)) {}
    Result<> look_at(PageMap& map, PageRun run, const TierOfNode& tiers, const Ask& ask,
                     const Tracker::Visit& visit);
    [[nodiscard]] std::uint8_t tier_of(PageMapEntry word, const TierOfNode& tiers) const;
    // What there is to see from `page` on goes into seen_: of so many pages, or of a huge page, of which one
    // word tells. They answer how many pages that is; 0: the address space is over.
    Result<std::size_t> see_each(PageMap& map, std::uint64_t page, std::size_t count, const TierOfNode& tiers,
                                 const Ask& ask);
    Result<std::size_t> see_whole(PageMap& map, std::uint64_t page, const TierOfNode& tiers, const Ask& ask);
    void count_in(const PageSeen& seen, std::uint64_t pages);

    Files* files_;
    FrameNodes nodes_;
    std::vector<PageSeen> seen_;
    Look look_;
    std::uint64_t touches_ = 0;
    std::uint64_t slow_touches_ = 0;
    std::uint64_t windows_ = 1;
};

}  // namespace memtide::agent

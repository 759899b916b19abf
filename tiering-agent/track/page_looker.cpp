#include "tiering-agent/track/page_looker.h"

#include <algorithm>

namespace memtide::agent {

Result<PageLooker> PageLooker::make(Files& files) {
    auto nodes = FrameNodes::read(files);
    if (!nodes) return std::unexpected(nodes.error());
    return PageLooker(files, *std::move(nodes));
}

Result<> PageLooker::refresh() {
    auto nodes = FrameNodes::read(*files_);
    if (!nodes) return std::unexpected(nodes.error());
    nodes_ = *std::move(nodes);
    return {};
}

Result<Look> PageLooker::look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                              const Ask& ask, const Tracker::Visit& visit) {
    auto map = PageMap::open(*files_, pid);
    if (!map) return std::unexpected(map.error());
    look_ = {};
    touches_ = slow_touches_ = 0;
    windows_ = 1;
    for (const VirtualRange range : ranges) {
        const auto runs = map->populated(range);
        if (!runs) return std::unexpected(runs.error());
        for (const PageRun& run : *runs)
            if (auto done = look_at(*map, run, tiers, ask, visit); !done)
                return std::unexpected(done.error());
    }
    look_.touched_pages = touches_ / windows_;
    look_.touched_slow_pages = slow_touches_ / windows_;
    return look_;
}

// In groups as HeatMap has them.
Result<> PageLooker::look_at(PageMap& map, PageRun run, const TierOfNode& tiers, const Ask& ask,
                             const Tracker::Visit& visit) {
    for (std::uint64_t page = run.begin; page < run.end;) {
        const std::uint64_t next = std::min(run.end, (page / kPagesPerHuge + 1) * kPagesPerHuge);
        const bool whole = run.huge && next - page == kPagesPerHuge;
        const auto seen =
            whole ? see_whole(map, page, tiers, ask) : see_each(map, page, next - page, tiers, ask);
        if (!seen) return std::unexpected(seen.error());
        if (*seen == 0) return {};
        if (std::ranges::any_of(seen_, [](const PageSeen& one) { return one.tier != PageHeat::kNowhere; }))
            visit(page, seen_);
        page += *seen;
    }
    return {};
}

Result<std::size_t> PageLooker::see_each(PageMap& map, std::uint64_t page, std::size_t count,
                                         const TierOfNode& tiers, const Ask& ask) {
    const auto words = map.read(page, count);
    if (!words) return std::unexpected(words.error());
    seen_.clear();
    for (const PageMapEntry word : *words) {
        PageSeen& seen = seen_.emplace_back(PageSeen{.tier = tier_of(word, tiers)});
        if (seen.tier != PageHeat::kNowhere) {
            const Touches touches = ask(page, 1, word);
            seen.touched = touches.touched;
            seen.windows = touches.windows;
            count_in(seen, 1);
        }
        ++page;
    }
    return words->size();
}

Result<std::size_t> PageLooker::see_whole(PageMap& map, std::uint64_t page, const TierOfNode& tiers,
                                          const Ask& ask) {
    const auto words = map.read(page, 1);
    if (!words) return std::unexpected(words.error());
    if (words->empty()) return 0;
    PageSeen seen{.tier = tier_of(words->front(), tiers), .touched = 0, .huge = true};
    if (seen.tier != PageHeat::kNowhere) {
        const Touches touches = ask(page, kPagesPerHuge, words->front());
        seen.touched = touches.touched;
        seen.windows = touches.windows;
        count_in(seen, kPagesPerHuge);
    }
    seen_.assign(kPagesPerHuge, seen);
    return kPagesPerHuge;
}

std::uint8_t PageLooker::tier_of(PageMapEntry word, const TierOfNode& tiers) const {
    if (!word.is_present() || word.frame() == 0) return PageHeat::kNowhere;
    const int node = nodes_.node_of(word.frame());
    return node < 0 || static_cast<std::size_t>(node) >= tiers.size() ? PageHeat::kNowhere
                                                                      : tiers[static_cast<std::size_t>(node)];
}

void PageLooker::count_in(const PageSeen& seen, std::uint64_t pages) {
    look_.present_pages += pages;
    touches_ += pages * seen.touched;
    if (seen.tier != 0) slow_touches_ += pages * seen.touched;
    windows_ = std::max<std::uint64_t>(windows_, seen.windows);
}

}  // namespace memtide::agent

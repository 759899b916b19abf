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
        const std::uint64_t group = page / kPagesPerHuge * kPagesPerHuge;
        const std::uint64_t next = std::min(run.end, group + kPagesPerHuge);
        const auto words = map.read(page, next - page);
        if (!words) return std::unexpected(words.error());
        if (words->empty()) return {};
        const bool whole = run.huge && page == group && words->size() == kPagesPerHuge;
        Touches touches;
        if (whole) touches = ask(group + kPagesPerHuge / 2, (*words)[kPagesPerHuge / 2]);
        seen_.clear();
        bool any = false;
        for (std::size_t i = 0; i < words->size(); ++i) {
            const PageMapEntry word = (*words)[i];
            const std::uint8_t tier = tier_of(word, tiers);
            PageSeen seen{.tier = tier, .touched = 0, .huge = run.huge};
            if (tier != PageHeat::kNowhere) {
                if (!whole) touches = ask(page + i, word);
                seen.touched = touches.touched;
                seen.windows = touches.windows;
                count(seen);
                any = true;
            }
            seen_.push_back(seen);
        }
        if (any) visit(page, seen_);
        page += words->size();
    }
    return {};
}

std::uint8_t PageLooker::tier_of(PageMapEntry word, const TierOfNode& tiers) const {
    if (!word.is_present() || word.frame() == 0) return PageHeat::kNowhere;
    const int node = nodes_.node_of(word.frame());
    return node < 0 || static_cast<std::size_t>(node) >= tiers.size() ? PageHeat::kNowhere
                                                                      : tiers[static_cast<std::size_t>(node)];
}

void PageLooker::count(const PageSeen& seen) {
    ++look_.present_pages;
    touches_ += seen.touched;
    if (seen.tier != 0) slow_touches_ += seen.touched;
    windows_ = std::max<std::uint64_t>(windows_, seen.windows);
}

}  // namespace memtide::agent

#include "tiering-agent/track/marked_pages.h"

#include <utility>

#include "common/log/log.h"

namespace memtide::agent {

Result<MarkedPages> MarkedPages::make(Files& files, IsTouched is_touched) {
    auto looker = PageLooker::make(files);
    if (!looker) return std::unexpected(looker.error());
    auto first = FirstTouches::open();
    if (!first) log::info("the order of first touches is not known", {{"why", first.error()}});
    return MarkedPages(*std::move(looker), first ? std::optional(*std::move(first)) : std::nullopt,
                       is_touched);
}

void MarkedPages::begin(int pid, const WindowWish& wish) {
    most_pages_.erase(pid);
    if (!first_ || !wish.mostly_huge) {
        small_.erase(pid);
        return;
    }
    first_->begin(pid);
    most_pages_[pid] = wish.most_pages;
}

Result<Look> MarkedPages::look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                               const Tracker::Visit& visit) {
    const auto most = most_pages_.find(pid);
    return most == most_pages_.end() ? look_at_all(pid, ranges, tiers, visit)
                                     : look_at_first(pid, most->second, ranges, tiers, visit);
}

Result<Look> MarkedPages::look_at_all(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                                      const Tracker::Visit& visit) {
    const PageLooker::Ask ask = [this](std::uint64_t, std::uint64_t, PageMapEntry word) {
        return Touches{.touched = is_touched_(word), .windows = 1};
    };
    return looker_.look(pid, ranges, tiers, ask, visit);
}

Result<Look> MarkedPages::look_at_first(int pid, std::uint64_t most_pages,
                                        std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                                        const Tracker::Visit& visit) {
    std::unordered_set<std::uint64_t>& small = small_[pid];
    const FirstTouches::Early early = first_->end(pid, ranges, most_pages, small);
    small.clear();
    std::uint64_t all = 0;
    std::vector<std::uint64_t> in_huge;
    const PageLooker::Ask ask = [&](std::uint64_t page, std::uint64_t count, PageMapEntry word) {
        if (!is_touched_(word)) return Touches{};
        all += count;
        const std::uint64_t group = page / kPagesPerHuge;
        if (count == 1) {
            small.insert(group);
            return Touches{.touched = early.pages.contains(page), .windows = 1};
        }
        if (const auto first = early.first_pages.find(group); first != early.first_pages.end())
            in_huge.push_back(first->second);
        return Touches{.touched = early.groups.contains(group), .windows = 1};
    };
    auto look = looker_.look(pid, ranges, tiers, ask, visit);
    if (!look) return look;
    look->all_touched_pages = all;
    look->touched_in_huge = std::move(in_huge);
    return look;
}

}  // namespace memtide::agent

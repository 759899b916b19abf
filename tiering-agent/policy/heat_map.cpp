#include "tiering-agent/policy/heat_map.h"

#include <algorithm>
#include <limits>

namespace memtide::agent {
namespace {

// G. Marsaglia, Xorshift RNGs, 2003.
std::uint32_t next_random(std::uint32_t& state) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

bool is_there(const PageSeen& seen) { return seen.tier != PageHeat::kNowhere; }

}  // namespace

void HeatMap::advance(std::uint64_t ticks) {
    // Where nobody looked for longer, the clock stood still: else what is old would seem young.
    constexpr std::uint64_t kMostAtOnce = std::numeric_limits<Tick>::max() - kLongestUntouched;
    now_ = static_cast<Tick>(now_ + std::min(ticks, kMostAtOnce));
}

void HeatMap::note_touch(bool touched, bool is_new, Tick& touched_at) const {
    if (touched || is_new)
        touched_at = now_;
    else
        touched_at = static_cast<Tick>(now_ - untouched_since(touched_at));
}

void HeatMap::observe(std::uint64_t page, std::span<const PageSeen> seen) {
    while (!seen.empty()) {
        const auto first = static_cast<unsigned>(page % kPagesPerHuge);
        const std::size_t count = std::min<std::size_t>(kPagesPerHuge - first, seen.size());
        const auto part = seen.first(count);
        const std::uint64_t number = page / kPagesPerHuge;
        // Pages behind those of the call before, in the same group: the same look goes on.
        const bool goes_on = page >= end_of_last_ && end_of_last_ > number * kPagesPerHuge;
        const auto found = groups_.find(number);
        if (found != groups_.end())
            observe_group(found->second, first, part, goes_on);
        else if (std::ranges::any_of(part, is_there))
            observe_group(groups_[number], first, part, goes_on);
        page += count;
        end_of_last_ = page;
        seen = seen.subspan(count);
    }
}

void HeatMap::observe_group(Group& group, unsigned first, std::span<const PageSeen> seen, bool goes_on) {
    unsigned before = group.windows - (goes_on ? std::min(group.windows, windows_of_last_) : 0U);
    unsigned windows = goes_on ? windows_of_last_ : 0;
    const bool huge = seen.size() == kPagesPerHuge && seen.front().huge && is_there(seen.front());
    if (huge) {
        // What was split before and is one now begins anew.
        if (group.pages) {
            group = Group{};
            return observe_group(group, first, seen, false);
        }
        // Of a page that is known by parts, the one that tells most.
        const PageSeen most = *std::ranges::max_element(seen, {}, &PageSeen::touched);
        windows = std::max<unsigned>(windows, most.windows);
        note_touch(most.touched > 0, group.whole.tier() == PageHeat::kNowhere, group.touched_at);
        observe_unit(group.whole, most.touched, most.windows, before);
        group.whole.set_tier(seen.front().tier);
    } else {
        if (!group.pages) {
            group.pages = std::make_unique<Pages>();
            // Pages of a huge page that was split are as warm as it was, until windows show which of them
            // are.
            if (group.whole.tier() != PageHeat::kNowhere) {
                group.pages->heat.fill(group.whole);
                before = 0;
            }
            group.pages->touched_at.fill(group.touched_at);
            group.whole = PageHeat{};
        }
        for (std::size_t i = 0; i < seen.size(); ++i) {
            PageHeat& heat = group.pages->heat[first + i];
            const bool is_new = heat.tier() == PageHeat::kNowhere;
            // A page that came back is a new one.
            if (!is_there(seen[i]) || is_new) heat = PageHeat{};
            if (!is_there(seen[i])) continue;
            windows = std::max<unsigned>(windows, seen[i].windows);
            note_touch(seen[i].touched > 0, is_new, group.pages->touched_at[first + i]);
            observe_unit(heat, seen[i].touched, seen[i].windows, before);
            heat.set_tier(seen[i].tier);
        }
    }
    group.windows = static_cast<std::uint16_t>(
        std::min<unsigned>(before + windows, std::numeric_limits<std::uint16_t>::max()));
    windows_of_last_ = static_cast<std::uint16_t>(windows);
}

// In which of the windows it was touched nobody said: in any.
void HeatMap::observe_unit(PageHeat& heat, unsigned touched, unsigned windows, unsigned windows_before) {
    for (unsigned left = windows; left > 0; --left) {
        const std::uint32_t random = next_random(random_);
        const bool now = left > 1 ? (random >> 8) % left < touched : touched > 0;
        if (now) --touched;
        heat.observe(now, windows_before++, left > 1 ? next_random(random_) : random);
    }
}

void HeatMap::restart() {
    for (auto& [number, group] : groups_) group.windows = 0;
}

void HeatMap::forget(std::uint64_t first, std::uint64_t end) {
    auto group = groups_.lower_bound(first / kPagesPerHuge);
    while (group != groups_.end() && group->first * kPagesPerHuge < end) {
        const std::uint64_t begins = group->first * kPagesPerHuge;
        if (begins >= first && begins + kPagesPerHuge <= end) {
            group = groups_.erase(group);
            continue;
        }
        if (group->second.pages)
            for (std::uint64_t page = std::max(first, begins); page < std::min(end, begins + kPagesPerHuge);
                 ++page)
                group->second.pages->heat[page - begins] = PageHeat{};
        else
            group->second.whole = PageHeat{};  // a huge page of which a part is gone is none
        ++group;
    }
}

void HeatMap::set_tier(std::uint64_t page, std::uint8_t tier) {
    const auto group = groups_.find(page / kPagesPerHuge);
    if (group == groups_.end()) return;
    PageHeat& heat =
        group->second.pages ? group->second.pages->heat[page % kPagesPerHuge] : group->second.whole;
    if (heat.tier() != PageHeat::kNowhere) heat.set_tier(tier);
}

HeatMap::Unit HeatMap::at(std::uint64_t page) const {
    const auto group = groups_.find(page / kPagesPerHuge);
    if (group == groups_.end()) return {.page = page, .pages = 1, .windows = 0, .heat = {}};
    if (const auto& pages = group->second.pages)
        return {page, 1, group->second.windows, pages->heat[page % kPagesPerHuge],
                untouched_since(pages->touched_at[page % kPagesPerHuge])};
    return {page / kPagesPerHuge * kPagesPerHuge, kPagesPerHuge, group->second.windows, group->second.whole,
            untouched_since(group->second.touched_at)};
}

std::size_t HeatMap::memory() const {
    constexpr std::size_t kNode = sizeof(std::pair<std::uint64_t, Group>) + 4 * sizeof(void*);  // of the tree
    std::size_t bytes = sizeof *this + groups_.size() * kNode;
    for (const auto& [number, group] : groups_)
        if (group.pages) bytes += sizeof(Pages);
    return bytes;
}

}  // namespace memtide::agent

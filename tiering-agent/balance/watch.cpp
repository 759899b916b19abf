#include "tiering-agent/balance/watch.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace memtide::agent {
namespace {

// What is known of mappings that are the same as before.
void take_over(const std::vector<Vma>& from, std::vector<Vma>& to) {
    auto old = from.begin();
    for (Vma& vma : to) {
        while (old != from.end() && old->range.begin < vma.range.begin) ++old;
        if (old == from.end()) return;
        if (old->range.begin != vma.range.begin || old->kind != vma.kind || old->name != vma.name) continue;
        vma.flags = old->flags;
        vma.policy = old->policy;
    }
}

// Neighbours as one.
void append(std::vector<VirtualRange>& ranges, VirtualRange range) {
    if (!ranges.empty() && ranges.back().end == range.begin)
        ranges.back().end = range.end;
    else
        ranges.push_back(range);
}

// What mappings span without the two largest holes between them: above and below what mmap(2) has given.
std::uint64_t area_pages_of(const std::vector<Vma>& vmas) {
    if (vmas.empty()) return 0;
    std::array<std::uint64_t, 2> holes{};
    for (std::size_t i = 1; i < vmas.size(); ++i) {
        const std::uint64_t hole = vmas[i].range.begin - vmas[i - 1].range.end;
        if (hole > holes[0])
            holes = {hole, holes[0]};
        else
            holes[1] = std::max(holes[1], hole);
    }
    return (vmas.back().range.end - vmas.front().range.begin - holes[0] - holes[1]) >> kPageShift;
}

}  // namespace

Result<> Watch::refresh(const Files& files, const TieringTarget& target, Time now) {
    auto vmas = read_address_space(files, process_);
    if (!vmas) return std::unexpected(vmas.error());
    take_over(vmas_, *vmas);
    const bool has_new = std::ranges::any_of(*vmas, [&](const Vma& vma) {
        const auto stays = why_it_stays(vma, target);
        return stays && stays->reason == StayReason::kNotLookedAt;
    });
    if (has_new || now >= look_at_flags_at_) {
        if (auto looked = look_at_flags(files, process_, *vmas); !looked) return looked;
        if (auto looked = look_at_policies(files, process_, *vmas); !looked) return looked;
        look_at_flags_at_ = now + kLookAtFlagsEvery;
    }
    vmas_ = *std::move(vmas);
    if (splits_ && target.huge_pages == HugePageRule::kKeep) huge_pages_ = {};
    splits_ = target.huge_pages == HugePageRule::kSplit;
    static const std::vector<Vma> kNone;
    hints_.refresh(files, process_.pid, target.hints ? vmas_ : kNone);
    ranges_.clear();
    private_ranges_.clear();
    for (const Vma& vma : vmas_) {
        if (why_it_stays(vma, target)) continue;
        append(ranges_, vma.range);
        const bool is_anonymous =
            vma.kind == VmaKind::kAnonymous || vma.kind == VmaKind::kHeap || vma.kind == VmaKind::kStack;
        if (is_anonymous && vma.is_private) append(private_ranges_, vma.range);
    }
    return {};
}

std::chrono::microseconds Watch::disturbance(const Files& files) {
    const auto stat = read_stat(files, process_.pid);
    if (!stat) return {};
    const std::uint64_t before = faults_.value_or(stat->minor_faults);
    faults_ = stat->minor_faults;
    // Each page is touched for the first time once; the other faults are those that it has anyway.
    const std::uint64_t faults =
        std::min(stat->minor_faults - std::min(before, stat->minor_faults), present_pages());
    return std::chrono::duration_cast<std::chrono::microseconds>(faults * touch_cost_);
}

Result<> Watch::begin(Tracker& tracker, const WindowWish& wish) const {
    return tracker.begin(process_.pid, with_shape(wish));
}

WindowWish Watch::with_shape(WindowWish wish) const {
    wish.area_pages = area_pages_of(vmas_);
    // What has been split leaves others that may have to be.
    const std::uint64_t few = present_pages() / (splits_ ? 8 : 2);
    wish.mostly_huge = pages_in_huge_ > few;
    return wish;
}

std::uint64_t Watch::present_pages() const {
    return std::accumulate(pages_by_tier_.begin(), pages_by_tier_.end(), std::uint64_t{0});
}

Result<Look> Watch::look(Tracker& tracker, const TierOfNode& tiers, Time now) {
    if (!first_look_) first_look_ = now;
    const auto ticks = [](std::chrono::seconds time) { return static_cast<std::uint64_t>(time / kTick); };
    const auto before =
        std::exchange(watched_for_, std::chrono::duration_cast<std::chrono::seconds>(now - *first_look_));
    heat_.advance(ticks(watched_for_) - ticks(before));
    pages_by_tier_.assign(PageHeat::kTiers, 0);
    pages_in_huge_ = 0;
    std::uint64_t known_to = 0;
    auto look =
        tracker.look(process_.pid, ranges_, tiers, [&](std::uint64_t page, std::span<const PageSeen> seen) {
            heat_.forget(known_to, page);
            heat_.observe(page, seen);
            history_.observe(page, seen);
            known_to = page + seen.size();
            for (const PageSeen& one : seen) {
                if (one.tier == PageHeat::kNowhere) continue;
                ++pages_by_tier_[one.tier];
                if (one.huge) ++pages_in_huge_;
            }
        });
    if (!look) return look;
    touch_cost_ = look->touch_cost;
    sees_reads_ = look->sees_reads;
    if (look->begins_anew) heat_.restart();
    heat_.forget(known_to, std::numeric_limits<std::uint64_t>::max());
    history_.end_look(now);
    if (splits_) {
        huge_pages_.note_touched(look->touched_in_huge);
        huge_pages_.follow(heat_, now);
    }
    return look;
}

}  // namespace memtide::agent

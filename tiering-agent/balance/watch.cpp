#include "tiering-agent/balance/watch.h"

#include <algorithm>
#include <limits>
#include <string>

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

std::uint64_t Watch::new_faults(const Files& files) {
    const auto text = files.read("proc/" + std::to_string(process_.pid) + "/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat) return 0;
    const std::uint64_t before = faults_.value_or(stat->minor_faults);
    faults_ = stat->minor_faults;
    return stat->minor_faults - std::min(before, stat->minor_faults);
}

Result<Look> Watch::look(Tracker& tracker, const TierOfNode& tiers) {
    pages_by_tier_.assign(PageHeat::kTiers, 0);
    std::uint64_t known_to = 0;
    auto look =
        tracker.look(process_.pid, ranges_, tiers, [&](std::uint64_t page, std::span<const PageSeen> seen) {
            heat_.forget(known_to, page);
            heat_.observe(page, seen);
            known_to = page + seen.size();
            for (const PageSeen& one : seen)
                if (one.tier != PageHeat::kNowhere) ++pages_by_tier_[one.tier];
        });
    if (look) heat_.forget(known_to, std::numeric_limits<std::uint64_t>::max());
    return look;
}

}  // namespace memtide::agent

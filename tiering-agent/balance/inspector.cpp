#include "tiering-agent/balance/inspector.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace memtide::agent {
namespace {

std::uint64_t present_pages(const Watch& watch) {
    std::uint64_t sum = 0;
    for (const std::uint64_t pages : watch.pages_by_tier()) sum += pages;
    return sum;
}

// Watches by what they have, the most first.
std::vector<const Watch*> by_size(const std::map<std::uint64_t, Watch>& watches) {
    std::vector<const Watch*> sorted;
    sorted.reserve(watches.size());
    for (const auto& [space, watch] : watches) sorted.push_back(&watch);
    std::ranges::stable_sort(sorted, std::ranges::greater{},
                             [](const Watch* watch) { return present_pages(*watch); });
    return sorted;
}

WorkingSets::Of working_set_of(const Watch& watch) {
    WorkingSets::Of set{.name = watch.comm(),
                        .pid = watch.process().pid,
                        .processes = 1,
                        .rss = watch.rss(),
                        .watched_for = watch.watched_for()};
    std::array<std::uint64_t, HeatMap::kLongestUntouched + 1> all{};
    std::array<std::uint64_t, HeatMap::kLongestUntouched + 1> fast{};
    watch.heat().for_each([&](const HeatMap::Unit& unit) {
        all[unit.untouched] += unit.pages;
        if (unit.heat.tier() == 0) fast[unit.untouched] += unit.pages;
    });
    for (std::size_t ticks = 0; ticks < all.size(); ++ticks) {
        set.present_pages += all[ticks];
        set.all_fast_pages += fast[ticks];
        for (std::size_t i = 0; i < WorkingSets::kWithin.size(); ++i) {
            if (static_cast<std::int64_t>(ticks) * Watch::kTick >= WorkingSets::kWithin[i]) continue;
            set.touched_pages[i] += all[ticks];
            set.fast_pages[i] += fast[ticks];
        }
    }
    return set;
}

void add(const WorkingSets::Of& more, WorkingSets::Of& to) {
    to.processes += more.processes;
    to.rss += more.rss;
    to.present_pages += more.present_pages;
    to.all_fast_pages += more.all_fast_pages;
    to.watched_for = std::max(to.watched_for, more.watched_for);
    for (std::size_t i = 0; i < WorkingSets::kWithin.size(); ++i) {
        to.touched_pages[i] += more.touched_pages[i];
        to.fast_pages[i] += more.fast_pages[i];
    }
}

}  // namespace

WorkingSets Inspector::working_sets() const {
    WorkingSets sets;
    for (const TieringTarget& target : targets()) sets.targets.push_back({.name = target.name});
    std::map<std::string, WorkingSets::Of> cgroups;
    for (const auto& [space, watch] : balancer_.watches_) {
        WorkingSets::Of set = working_set_of(watch);
        WorkingSets::Of& of_target = sets.targets[watch.target()];
        set.target = of_target.name;
        add(set, of_target);
        // Where the system has no cgroups v2, none are told.
        if (!watch.cgroup().empty()) {
            WorkingSets::Of& of_cgroup = cgroups[watch.cgroup()];
            of_cgroup.name = watch.cgroup();
            add(set, of_cgroup);
        }
        sets.processes.push_back(std::move(set));
    }
    for (auto& [path, set] : cgroups) sets.cgroups.push_back(std::move(set));
    std::ranges::stable_sort(sets.processes, std::ranges::greater{}, &WorkingSets::Of::present_pages);
    if (sets.processes.size() > WorkingSets::kMostProcesses)
        sets.processes.resize(WorkingSets::kMostProcesses);
    return sets;
}

std::optional<std::string> Inspector::why_left_out(std::size_t target) const {
    const TieringMode whole = balancer_.options_.config.mode;
    const TieringMode mode = balancer_.mode_of(target);
    if (mode == TieringMode::kOff) return "its mode is off: it is not looked at";
    // As Balancer::spaces() has it.
    if (whole == TieringMode::kMove && mode != TieringMode::kMove)
        return "its mode is observe: it is looked at, and others do not change places with it";
    for (std::size_t fast = 0; fast + 1 < balancer_.tiers_.tiers.size(); ++fast)
        if (balancer_.takes_part(targets()[target], static_cast<std::uint8_t>(fast))) return std::nullopt;
    if (balancer_.tiers_.tiers.size() < 2) return std::nullopt;
    return "its `tiers` are no two neighbouring ones";
}

PlanPreview::OfPair Inspector::plan_pair(std::uint8_t fast) const {
    const std::vector<Tier>& tiers = balancer_.tiers_.tiers;
    PlanPreview::OfPair answer{.fast = tiers[fast].name, .slow = tiers[fast + 1U].name};
    const auto prepared = balancer_.prepare(fast, std::chrono::steady_clock::now());
    if (!prepared) return answer;
    const auto& [job, pair, options] = *prepared;
    const std::vector<Space> spaces = balancer_.spaces(fast);
    const ExchangePlan plan = plan_exchange(spaces, pair, options, &balancer_.log_);
    answer.fast_free = pair.fast_free;
    answer.slow_free = pair.slow_free;
    answer.reserve = pair.reserve;
    answer.promoted_pages = plan.promoted_pages;
    answer.demoted_pages = plan.demoted_pages;
    answer.most_pages = options.most_pages;
    answer.is_even = plan.is_even;
    answer.hit_before = plan.hit_before;
    answer.hit_after = plan.hit_after;
    // Both are sorted: hottest first, coldest first.
    if (!plan.promotions.empty()) answer.coldest_promoted = plan.promotions.back().heat;
    if (!plan.demotions.empty()) answer.warmest_demoted = plan.demotions.back().heat;
    std::map<std::size_t, PlanPreview::OfTarget> by_target;
    for (const Space& space : spaces) {
        const std::size_t target = balancer_.watches_.at(space.id).target();
        by_target[target] = {.name = targets()[target].name, .rate_limit = targets()[target].rate_limit};
    }
    for (const Move& move : plan.promotions)
        by_target[balancer_.watches_.at(move.space).target()].promoted_pages += move.pages;
    for (const Move& move : plan.demotions)
        by_target[balancer_.watches_.at(move.space).target()].demoted_pages += move.pages;
    for (auto& [target, moves] : by_target) answer.targets.push_back(std::move(moves));
    return answer;
}

PlanPreview Inspector::plan() const {
    const std::size_t count = std::min<std::size_t>(balancer_.tiers_.tiers.size(), PageHeat::kTiers);
    PlanPreview plan;
    plan.mode = balancer_.options_.config.mode;
    if (count < 2) plan.note = "this machine has one tier of memory: there is nowhere to move to";
    if (balancer_.rounds_ == 0) plan.note = "nothing has been looked at yet";
    for (std::size_t fast = 0; fast + 1 < count; ++fast)
        plan.pairs.push_back(plan_pair(static_cast<std::uint8_t>(fast)));
    for (std::size_t i = 0; i < targets().size(); ++i)
        if (auto why = why_left_out(i)) plan.left_out.push_back({targets()[i].name, *std::move(why)});
    return plan;
}

Result<HeatPicture> Inspector::heat(std::optional<int> pid, const std::optional<std::string>& target) const {
    if (target && std::ranges::find(targets(), *target, &TieringTarget::name) == targets().end())
        return fail(ErrorCode::kNotFound, fmt::format("there is no target \"{}\"", *target));
    HeatPicture picture;
    for (const Tier& tier : balancer_.tiers_.tiers) picture.tiers.push_back(tier.name);
    const auto now = std::chrono::steady_clock::now();
    for (const Watch* const watch : by_size(balancer_.watches_)) {
        const std::string& name = targets()[watch->target()].name;
        if ((pid && watch->process().pid != *pid) || (target && name != *target)) continue;
        if (picture.processes.size() == HeatPicture::kMostProcesses) break;
        HeatPicture::OfProcess one{.pid = watch->process().pid, .comm = watch->comm(), .target = name};
        for (const auto began : watch->history().columns())
            one.columns.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - began));
        one.rows = watch->history().rows();
        picture.processes.push_back(std::move(one));
    }
    if (pid && picture.processes.empty())
        return fail(ErrorCode::kNotFound,
                    fmt::format("process {} is not looked at{}; `memtide agent explain {} ADDRESS` says why",
                                *pid, target ? " in this target" : "", *pid));
    return picture;
}

}  // namespace memtide::agent

// Inspector::explain(): why a page is where it is.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tiering-agent/balance/inspector.h"
#include "tiering-agent/track/page_map.h"

namespace memtide::agent {
namespace {

constexpr double kPercent = 100.0 / PageHeat::kMost;

bool has_page(const std::vector<Move>& moves, std::uint64_t space, std::uint64_t page) {
    return std::ranges::any_of(moves,
                               [&](const Move& move) { return move.space == space && move.page == page; });
}

unsigned weighted(unsigned heat, double weight) {
    return static_cast<unsigned>(std::lround(weighted_heat(heat, weight)));
}

}  // namespace

const Watch* Inspector::watch_of(int pid) const {
    for (const auto& [space, watch] : balancer_.watches_)
        if (watch.process().pid == pid) return &watch;
    return nullptr;
}

// The target of the process, and what of the process itself keeps it from being moved.
std::optional<std::size_t> Inspector::explain_process(Explanation& answer, Process& process) const {
    ProcessTable table(balancer_.parts_.files);
    const auto processes = table.read();
    if (!processes) return std::nullopt;
    const auto found =
        std::ranges::find(*processes, answer.pid, [](const Process& one) { return one.id.pid; });
    if (found == processes->end()) return std::nullopt;
    process = *found;
    answer.comm = process.comm;
    const auto members =
        assign_targets(*processes, targets(), balancer_.options_.agent_pid, balancer_.memberships_);
    const Membership& member = members[static_cast<std::size_t>(found - processes->begin())];
    answer.membership = agent::explain(member, targets());
    if (!member.target) {
        answer.why_not.push_back("the process " + answer.membership);
        return std::nullopt;
    }
    answer.target = targets()[*member.target].name;
    if (const auto why = why_left_out(*member.target))
        answer.why_not.push_back(fmt::format("target \"{}\" has no part in it: {}", answer.target, *why));
    else if (balancer_.options_.config.mode != TieringMode::kMove)
        answer.why_not.emplace_back("the mode of tiering is observe: nothing is moved");
    if (process.rss < balancer_.options_.least_rss)
        answer.why_not.push_back(
            fmt::format("the process has {}, and those of less than {} are not looked at",
                        format_bytes(process.rss), format_bytes(balancer_.options_.least_rss)));
    if (const auto why = why_cpuset_keeps(process)) answer.why_not.push_back(*why);
    return member.target;
}

// Where it may have memory of one tier alone, or of tiers that are no neighbours.
std::optional<std::string> Inspector::why_cpuset_keeps(const Process& process) const {
    if (!process.allowed_nodes || balancer_.tiers_.tiers.size() < 2) return std::nullopt;
    if (std::ranges::adjacent_find(balancer_.tiers_.tiers, [&](const Tier& fast, const Tier& slow) {
            return may_have(process.allowed_nodes, fast.nodes) && may_have(process.allowed_nodes, slow.nodes);
        }) != balancer_.tiers_.tiers.end())
        return std::nullopt;
    return fmt::format("its cpuset (cpuset.mems) has nodes {}: those of no two neighbouring tiers",
                       fmt::join(*process.allowed_nodes, ","));
}

Result<> Inspector::explain_mapping(Explanation& answer, const Process& process,
                                    const TieringTarget* target) const {
    const Files& files = balancer_.parts_.files;
    auto vmas = read_address_space(files, process.id);
    if (!vmas) return std::unexpected(vmas.error());
    const auto holds = [&](const Vma& vma) {
        return vma.range.begin <= answer.address && answer.address < vma.range.end;
    };
    const auto found = std::ranges::find_if(*vmas, holds);
    if (found == vmas->end())
        return fail(ErrorCode::kNotFound, fmt::format("nothing is mapped at {:#x} in process {} ({})",
                                                      answer.address, answer.pid, answer.comm));
    std::vector<Vma> one{*found};
    // Not what is remembered: it may be old, and this is asked seldom.
    (void)look_at_flags(files, process.id, one);
    (void)look_at_policies(files, process.id, one);
    answer.vma = one.front();
    const TieringTarget any;
    const TieringTarget& rules = target == nullptr ? any : *target;
    if (const auto stays = why_it_stays(answer.vma, rules))
        answer.why_not.push_back("the mapping stays: " + agent::explain(*stays, answer.vma, rules));
    return {};
}

void Inspector::explain_place(Explanation& answer) const {
    auto map = PageMap::open(balancer_.parts_.files, answer.pid);
    if (!map) return;
    const auto words = map->read(answer.address >> kPageShift, 1);
    if (!words || words->empty() || !words->front().is_present()) return;
    answer.is_present = true;
    const auto nodes = FrameNodes::read(balancer_.parts_.files);
    if (!nodes || words->front().frame() == 0) return;
    const int node = nodes->node_of(words->front().frame());
    if (node < 0) return;
    answer.node = node;
    if (const auto tier = balancer_.tiers_.tier_of(node))
        answer.tier = balancer_.tiers_.tiers[*tier].name;
    else
        answer.why_not.push_back(fmt::format("node {} is in no tier", node));
}

Explanation::Rank Inspector::rank_of(const Watch& watch, const HeatMap::Unit& unit, std::uint8_t fast) const {
    const unsigned own = weighted(unit.heat.heat(), targets()[watch.target()].weight / 100.0);
    Explanation::Rank rank{.fast = balancer_.tiers_.tiers[fast].name,
                           .slow = balancer_.tiers_.tiers[fast + 1U].name};
    for (const Space& space : balancer_.spaces(fast)) {
        std::array<unsigned, PageHeat::kMost + 1> heats{};
        for (unsigned heat = 0; heat <= PageHeat::kMost; ++heat) heats[heat] = weighted(heat, space.weight);
        space.heat->for_each([&](const HeatMap::Unit& other) {
            const bool is_fast = other.heat.tier() == fast;
            if (!is_fast && other.heat.tier() != fast + 1) return;
            const unsigned heat = heats[other.heat.heat()];
            rank.pages += other.pages;
            if (is_fast) rank.fast_pages += other.pages;
            if (heat > own) rank.warmer_pages += other.pages;
            if (heat == own) rank.as_warm_pages += other.pages;
            if (other.windows < kLeastWindows || balancer_.log_.rests(space.id, other.page)) return;
            if (is_fast)
                rank.coldest_fast = std::min(rank.coldest_fast.value_or(heat), heat);
            else
                rank.warmest_slow = std::max(rank.warmest_slow.value_or(heat), heat);
        });
    }
    return rank;
}

// What the plan that would be made now does with it.
std::string Inspector::verdict_of(const Explanation& answer, const Watch& watch,
                                  const HeatMap::Unit& unit) const {
    if (why_left_out(watch.target())) return "it stays: its target has no part in exchanges";
    const bool moves = answer.why_not.empty();
    const std::uint8_t tier = unit.heat.tier();
    const std::size_t count = std::min<std::size_t>(balancer_.tiers_.tiers.size(), PageHeat::kTiers);
    const auto plan_of = [&](std::uint8_t fast) -> std::optional<std::pair<ExchangePlan, ExchangeOptions>> {
        const auto prepared = balancer_.prepare(fast, std::chrono::steady_clock::now());
        if (!prepared) return std::nullopt;
        return std::pair{
            plan_exchange(balancer_.spaces(fast), prepared->pair, prepared->options, &balancer_.log_),
            prepared->options};
    };
    const std::string may = moves ? "" : ", if it were moved";
    if (unit.windows < kLeastWindows)
        return fmt::format("it was looked at in {} windows, and is judged after {}", unit.windows,
                           kLeastWindows);
    if (answer.last_move && answer.last_move->rests)
        return answer.last_move->error.empty() ? "it rests where it is, since it was moved a moment ago"
                                               : "it rests, since it could not be moved within a minute";
    if (tier + 1U < count) {
        const auto plan = plan_of(tier);
        if (plan && has_page(plan->first.demotions, watch.space(), unit.page))
            return fmt::format("the next exchange takes it down to {}{}", answer.rank->slow, may);
        if (tier == 0 && plan && plan->first.is_even)
            return "it stays: pages differ by no more than chance makes them differ";
    }
    if (tier == 0) return fmt::format("it stays: nothing in {} is surely warmer", answer.rank->slow);
    const auto plan = plan_of(static_cast<std::uint8_t>(tier - 1));
    if (!plan) return "it is not known what room there is";
    if (has_page(plan->first.promotions, watch.space(), unit.page))
        return fmt::format("the next exchange takes it up to {}{}", answer.rank->fast, may);
    if (plan->first.is_even) return "it stays: pages differ by no more than chance makes them differ";
    const auto& [exchange, options] = *plan;
    if (answer.heat->weighted < options.least_heat)
        return fmt::format("it stays: touched in less than {:.0f} % of the windows, it is not worth a move",
                           options.least_heat * kPercent);
    if (targets()[watch.target()].max_fast && tier == 1)
        return "it stays: its target has what `max_fast` allows, or others of it are warmer";
    if (exchange.promotions.empty())
        return fmt::format("it stays: it is not surely warmer than the coldest of {}", answer.rank->fast);
    return "it stays: others are warmer, and go before it";
}

void Inspector::explain_heat(Explanation& answer, const Watch& watch) const {
    const HeatMap::Unit unit = watch.heat().at(answer.address >> kPageShift);
    if (unit.heat.tier() == PageHeat::kNowhere) {
        answer.verdict = "no window has seen it yet";
        return;
    }
    const auto share = [](unsigned heat) { return heat / double{PageHeat::kMost}; };
    answer.heat =
        Explanation::Heat{.is_huge = unit.pages > 1,
                          .windows = unit.windows,
                          .lasting = share(unit.heat.lasting()),
                          .recent = share(unit.heat.recent()),
                          .is_changing = unit.heat.is_changing(),
                          .untouched = Watch::kTick * unit.untouched,
                          .weighted = weighted(unit.heat.heat(), targets()[watch.target()].weight / 100.0)};
    if (const auto last = balancer_.log_.last(watch.space(), unit.page)) {
        const auto ago = std::chrono::steady_clock::now() - last->at;
        Explanation::LastMove move{.ago = std::chrono::duration_cast<std::chrono::seconds>(ago),
                                   .undid = last->undid,
                                   .rests = balancer_.log_.rests(watch.space(), unit.page)};
        if (last->failed)
            move.error = ::strerrorname_np(last->error) == nullptr ? "?" : ::strerrorname_np(last->error);
        else if (last->to < balancer_.tiers_.tiers.size())
            move.to = balancer_.tiers_.tiers[last->to].name;
        answer.last_move = std::move(move);
    }
    if (balancer_.tiers_.tiers.size() < 2) {
        answer.verdict = "this machine has one tier of memory: there is nowhere to move to";
        return;
    }
    const std::uint8_t tier = unit.heat.tier();
    answer.rank = rank_of(watch, unit, static_cast<std::uint8_t>(tier == 0 ? 0 : tier - 1));
    answer.verdict = verdict_of(answer, watch, unit);
}

Result<Explanation> Inspector::explain(int pid, std::uint64_t address) const {
    Explanation answer{.pid = pid, .address = address};
    Process process;
    const auto target = explain_process(answer, process);
    if (process.id.pid != pid)
        return fail(ErrorCode::kNotFound, fmt::format("there is no process {} on this machine", pid));
    const TieringTarget* const rules = target ? &targets()[*target] : nullptr;
    if (auto mapped = explain_mapping(answer, process, rules); !mapped)
        return std::unexpected(std::move(mapped.error()));
    explain_place(answer);
    const Watch* const watch = watch_of(pid);
    if (watch != nullptr && watch->process() == process.id)
        explain_heat(answer, *watch);
    else if (answer.why_not.empty())
        answer.why_not.emplace_back("the process is not looked at yet");
    if (answer.verdict.empty() || (!answer.heat && !answer.why_not.empty())) {
        answer.verdict = !answer.is_present && answer.why_not.empty()
                             ? "nothing is there: it was never touched, or it is swapped out"
                             : "it stays where it is";
    }
    return answer;
}

}  // namespace memtide::agent

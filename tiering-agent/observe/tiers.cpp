#include "tiering-agent/observe/tiers.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace memtide::agent {
namespace {

void add_to(Tier& tier, const NodeFacts& node) {
    tier.nodes.push_back(node.node);
    tier.capacity += node.capacity;
    tier.free += node.free;
}

// What nodes without CPUs are told apart by.
struct Measure {
    std::function<unsigned(const NodeFacts&)> value;
    unsigned same_percent = 0;  // values so near to each other are one tier
    std::function<std::string(unsigned lowest, unsigned highest)> why;
};

std::string range_text(unsigned lowest, unsigned highest) {
    return lowest == highest ? fmt::format("{}", lowest) : fmt::format("{} to {}", lowest, highest);
}

unsigned distance_from_cpus(const NodeFacts& node, const std::vector<NodeFacts>& all) {
    constexpr unsigned kUnknown = 255;  // ACPI SLIT: unreachable
    unsigned nearest = kUnknown;
    for (const NodeFacts& other : all) {
        const auto distance = node.distances.find(other.node);
        if (other.has_cpus && distance != node.distances.end() && distance->second > 0)
            nearest = std::min(nearest, static_cast<unsigned>(distance->second));
    }
    return nearest;
}

Measure choose_measure(const std::vector<NodeFacts>& without_cpus, const std::vector<NodeFacts>& all) {
    if (std::ranges::all_of(without_cpus,
                            [](const NodeFacts& node) { return node.performance.latency_ns() != 0; }))
        return {.value = [](const NodeFacts& node) { return node.performance.latency_ns(); },
                .same_percent = kSameTierPercent,
                .why =
                    [](unsigned lowest, unsigned highest) {
                        return fmt::format("latency of {} ns (HMAT or CDAT)", range_text(lowest, highest));
                    }};
    std::set<int> kernel_tiers;
    for (const NodeFacts& node : without_cpus)
        if (node.kernel_tier) kernel_tiers.insert(*node.kernel_tier);
    if (kernel_tiers.size() > 1 &&
        std::ranges::all_of(without_cpus, [](const NodeFacts& node) { return node.kernel_tier.has_value(); }))
        return {.value = [](const NodeFacts& node) { return static_cast<unsigned>(*node.kernel_tier); },
                .why = [](unsigned lowest,
                          unsigned) { return fmt::format("the kernel's memory_tier{}", lowest); }};
    return {.value = [&all](const NodeFacts& node) { return distance_from_cpus(node, all); },
            .why = [](unsigned lowest,
                      unsigned) { return fmt::format("distance {} from the nearest CPUs", lowest); }};
}

// The nodes without CPUs, as tiers without names.
std::vector<Tier> slower_tiers(std::vector<NodeFacts> nodes, const std::vector<NodeFacts>& all) {
    const Measure measure = choose_measure(nodes, all);
    std::ranges::stable_sort(nodes, {}, measure.value);
    std::vector<Tier> tiers;
    unsigned lowest = 0;
    for (const NodeFacts& node : nodes) {
        const unsigned value = measure.value(node);
        const auto limit = std::uint64_t{lowest} * (100 + measure.same_percent) / 100;
        if (tiers.empty() || value > limit) {
            tiers.emplace_back();
            lowest = value;
        }
        add_to(tiers.back(), node);
        tiers.back().why = fmt::format("no CPUs; {}", measure.why(lowest, value));
    }
    for (Tier& tier : tiers) std::ranges::sort(tier.nodes);
    return tiers;
}

Tiers tiers_by_rule(const std::vector<NodeFacts>& with_memory, const std::vector<NodeFacts>& all) {
    Tiers result;
    Tier fastest;
    std::vector<NodeFacts> without_cpus;
    for (const NodeFacts& node : with_memory) {
        if (node.has_cpus)
            add_to(fastest, node);
        else
            without_cpus.push_back(node);
    }
    fastest.why = fastest.nodes.size() == 1 ? "has CPUs" : "have CPUs";
    if (!fastest.nodes.empty()) result.tiers.push_back(std::move(fastest));
    for (Tier& tier : slower_tiers(std::move(without_cpus), all)) result.tiers.push_back(std::move(tier));
    for (std::size_t i = 0; i < result.tiers.size(); ++i)
        result.tiers[i].name = i == 0 ? "fast" : i == 1 ? "slow" : fmt::format("slow-{}", i);
    return result;
}

Result<> check_overrides(const std::vector<TierOverride>& overrides) {
    std::map<int, std::string> owner;
    std::set<std::string> names;
    std::string rest;
    const auto refuse = [](std::string message) {
        return fail(ErrorCode::kInvalidArgument, std::move(message));
    };
    for (const TierOverride& tier : overrides) {
        if (!names.insert(tier.name).second)
            return refuse(fmt::format("two tiers are named \"{}\"", tier.name));
        for (const int node : tier.nodes)
            if (const auto [other, is_new] = owner.emplace(node, tier.name); !is_new)
                return refuse(fmt::format("node {} is in two tiers, \"{}\" and \"{}\"", node, other->second,
                                          tier.name));
        if (!tier.rest) continue;
        if (!rest.empty())
            return refuse(
                fmt::format("two tiers take the rest of the nodes, \"{}\" and \"{}\"", rest, tier.name));
        rest = tier.name;
    }
    return {};
}

Tiers tiers_by_override(const std::vector<NodeFacts>& with_memory, const std::vector<NodeFacts>& all,
                        const std::vector<TierOverride>& overrides) {
    Tiers result;
    std::set<int> named;
    for (const TierOverride& tier : overrides) named.insert(tier.nodes.begin(), tier.nodes.end());
    std::set<int> placed;
    for (const TierOverride& wanted : overrides) {
        Tier tier{.name = wanted.name};
        bool has_rest = false;
        for (const NodeFacts& node : with_memory) {
            const bool is_rest = wanted.rest && !named.contains(node.node);
            if (!is_rest && !wanted.nodes.contains(node.node)) continue;
            has_rest = has_rest || is_rest;
            add_to(tier, node);
            placed.insert(node.node);
        }
        tier.why = has_rest ? "the configuration says so; it takes nodes that are named nowhere"
                            : "the configuration says so";
        if (tier.nodes.empty()) tier.why += "; none of its nodes is there now";
        for (const int node : wanted.nodes) {
            if (placed.contains(node)) continue;
            const bool is_there = std::ranges::find(all, node, &NodeFacts::node) != all.end();
            result.notes.push_back(fmt::format("tier \"{}\" names node {}, which {}", wanted.name, node,
                                               is_there ? "has no memory" : "is not there (yet)"));
        }
        result.tiers.push_back(std::move(tier));
    }
    for (const NodeFacts& node : with_memory)
        if (!placed.contains(node.node))
            result.left_out.push_back({node.node,
                                       "no tier of the configuration names it; \"nodes: rest\" in "
                                       "one of them would take it"});
    return result;
}

}  // namespace

std::optional<std::size_t> Tiers::tier_of(int node) const {
    for (std::size_t i = 0; i < tiers.size(); ++i)
        if (std::ranges::find(tiers[i].nodes, node) != tiers[i].nodes.end()) return i;
    return std::nullopt;
}

Result<Tiers> group_tiers(const std::vector<NodeFacts>& nodes, const std::vector<TierOverride>& overrides) {
    if (auto good = check_overrides(overrides); !good) return std::unexpected(std::move(good.error()));
    std::vector<NodeFacts> with_memory;
    std::vector<NodeLeftOut> without;
    for (const NodeFacts& node : nodes) {
        if (node.capacity.value != 0)
            with_memory.push_back(node);
        else
            without.push_back({node.node, "it has no memory"});
    }
    Tiers result = overrides.empty() ? tiers_by_rule(with_memory, nodes)
                                     : tiers_by_override(with_memory, nodes, overrides);
    result.left_out.insert(result.left_out.begin(), without.begin(), without.end());
    return result;
}

}  // namespace memtide::agent

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tiering-agent/observe/nodes.h"

// Which memory is fast and which is slow.
namespace memtide::agent {

// A tier that the configuration names.
struct TierOverride {
    std::string name{};
    std::set<int> nodes{};
    bool rest = false;  // also every node with memory that no override names, hot-plugged ones too

    friend bool operator==(const TierOverride&, const TierOverride&) = default;
};

struct Tier {
    std::string name{};  // "fast", "slow", "slow-2" ... unless the configuration names it
    std::vector<int> nodes{};
    Bytes capacity{};
    Bytes free{};
    std::string why{};  // a sentence for people: what put these nodes there

    friend bool operator==(const Tier&, const Tier&) = default;
};

// A node that is in no tier.
struct NodeLeftOut {
    int node = 0;
    std::string why{};

    friend bool operator==(const NodeLeftOut&, const NodeLeftOut&) = default;
};

struct Tiers {
    std::vector<Tier> tiers{};  // fastest first; those of the configuration also while they are empty
    std::vector<NodeLeftOut> left_out{};
    std::vector<std::string> notes{};  // what is hardly meant: nodes that are not there, or have no memory

    // Position in `tiers`; nothing when the node is in none.
    [[nodiscard]] std::optional<std::size_t> tier_of(int node) const;
    friend bool operator==(const Tiers&, const Tiers&) = default;
};

// Latencies that differ by no more than this are one tier: tables of firmware are no better than that, and
// the kernel's own tiers are about as wide (include/linux/memory-tiers.h: MEMTIER_CHUNK_SIZE is 22 % of
// MEMTIER_ADISTANCE_DRAM).
inline constexpr unsigned kSameTierPercent = 20;

// Without overrides: nodes with CPUs are the fastest tier. The others follow by latency when it is known of
// all of them, else by the kernel's memory tiers when they tell them apart, else by their distance from the
// nearest node with CPUs. With overrides: as these say, in their order. Nodes without memory are in no tier.
// A node that an override names and that is not there is no error: it may come later. kInvalidArgument for a
// node in two tiers, two tiers of one name, two with `rest`. Pure: call it again when nodes came or went.
Result<Tiers> group_tiers(const std::vector<NodeFacts>& nodes,
                          const std::vector<TierOverride>& overrides = {});

}  // namespace memtide::agent

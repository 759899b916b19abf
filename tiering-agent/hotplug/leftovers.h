#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "tiering-agent/hotplug/plan.h"

// Regions that this agent made and no composition stands behind any more. Pure.
namespace memtide::agent {

// Regions this agent made whose memdevs went away, or that were never finished: blocks offline first, then
// the region, then the record. A record of which a memdev is alive belongs to a composition, or is left
// alone.
void plan_leftovers(const Desired& desired, const Seen& seen, const Notes& notes, Plan& plan);

const Region* find_region(const Seen& seen, std::string_view name);
// A recorded region is this agent's only while no memdev that is alive is attached to it.
bool has_no_live_memdev(const Region& region);

template <typename Blocks, typename Predicate>
std::vector<std::uint64_t> indexes_where(const Blocks& blocks, Predicate predicate) {
    std::vector<std::uint64_t> indexes;
    for (const MemoryBlock& block : blocks)
        if (predicate(block)) indexes.push_back(block.index);
    return indexes;
}
inline bool is_not_offline(const MemoryBlock& block) { return block.state != BlockState::kOffline; }

}  // namespace memtide::agent

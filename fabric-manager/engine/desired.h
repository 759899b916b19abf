#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fabric-manager/model/agent.h"
#include "fabric-manager/model/composition.h"

namespace memtide::fm {

// What the host's agent shall be told of a composition, by region: online once all parts of the region are
// bound, offline as soon as one of them has to go, nothing before and after. Pure.
std::vector<DesiredRegion> desired_regions(const Composition& composition);
// Of one of its regions.
std::optional<DesiredRegion> desired_region(const Composition& composition, std::uint32_t number);

// Whether no host has used the region since it was composed: only then can reading show that it was erased.
// What was found bound is not known to be unused. Pure.
bool is_unused(const Composition& composition, std::uint32_t region);

}  // namespace memtide::fm

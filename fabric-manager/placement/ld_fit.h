#pragma once

#include <optional>

#include "fabric-manager/model/fabric.h"
#include "fabric-manager/placement/placement.h"

namespace memtide::fm {

// How an LD of the wanted size comes to be, best first.
enum class LdFit {
    kClean,   // one with exactly the size is there and known to be erased
    kExact,   // one with exactly the size is there, or a whole SLD of it
    kInSlot,  // an unallocated LD slot of an MLD gets memory that no LD has
    kCarved,  // free LDs of an MLD are carved anew
};

// How the device would best give an LD of this size; nullopt when it cannot. Looks at each LD once.
std::optional<LdFit> rank_ld(const Device& device, Bytes size);

// The part with that LD, without `where`.
std::optional<PartPlacement> fit_ld(const Device& device, Bytes size);

}  // namespace memtide::fm

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

struct FittedLd {
    LdFit fit = LdFit::kExact;
    PartPlacement placement;  // without `where`
};

// The best way to get an LD of this size out of the device, through this head of a multi-headed one; nullopt
// when there is none.
std::optional<FittedLd> fit_ld(const Device& device, Bytes size, const Head* through = nullptr);

}  // namespace memtide::fm

#pragma once

#include <optional>

#include "fabric-manager/model/composition.h"
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

// How the device, which offers that, would best give an LD of this size; nullopt when it cannot.
std::optional<LdFit> rank_ld(const Device& device, const LdOffers& offers, Bytes size);

// The part with that LD, through this head of a multi-headed device, without `where`.
std::optional<PartPlacement> fit_ld(const Device& device, const LdOffers& offers, Bytes size,
                                    const Head* through);

// The largest size up to `at_most` that the device can give as one LD, through this head; 0 when there is
// none.
Bytes largest_fit(const Device& device, Bytes at_most, const Head* through = nullptr);

// The carve of the part with the memory of all LDs of its device that are free where its own is reached, so
// that what is free becomes one piece where it can. Nothing when its carve takes all of that already.
std::optional<Carve> widen(const Device& device, const Part& part);

}  // namespace memtide::fm

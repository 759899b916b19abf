#pragma once

#include <optional>
#include <vector>

#include "fabric-manager/model/fabric.h"

namespace memtide::fm {

// What a device could give as one LD now, without a look at each of its LDs: placement asks that of every
// device that a host reaches, and there are more LDs than a processor's cache holds.
struct LdOffers {
    struct Ready {
        Bytes size;
        bool clean = false;  // one of them is
        friend bool operator==(const Ready&, const Ready&) = default;
    };
    std::vector<Ready> ready;      // sizes of free LDs, each once, ascending
    bool has_slot = false;         // an LD without memory is there
    Bytes spare;                   // memory of an MLD that no LD has and no carve has taken
    Bytes all;                     // that, and what free LDs have; 0 without an LD that could have it
    std::optional<Bytes> refused;  // the smallest size that it is known to refuse to carve
    friend bool operator==(const LdOffers&, const LdOffers&) = default;
};

// Through this head of a multi-headed device.
LdOffers offers_of(const Device& device, const Head* through = nullptr);

}  // namespace memtide::fm

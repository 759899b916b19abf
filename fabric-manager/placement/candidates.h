#pragma once

#include <map>
#include <optional>
#include <vector>

#include "fabric-manager/placement/placement.h"

namespace memtide::fm {

// A device that may give memory to the host, and how much at most: what it has free, cut to the limits.
struct Candidate {
    const Device* device = nullptr;
    const LdOffers* offers = nullptr;  // of that device, while the inventory does not change
    Bytes most;
    Bytes free;
    double load = 0;                // share of its memory that is given out, 0 to 1
    const Head* through = nullptr;  // of a multi-headed device: the head by which the host reaches it

    [[nodiscard]] const SwitchId& switch_id() const {
        return through == nullptr ? device->switch_id : through->switch_id;
    }
    [[nodiscard]] std::uint8_t port() const { return through == nullptr ? device->port : through->port; }
};

// What the host can get from where.
struct Candidates {
    std::vector<Candidate> devices;
    std::vector<Exclusion> excluded;                     // when the request asks for an explanation
    std::map<SwitchId, std::vector<VppbAddress>> vppbs;  // free ones, in the order in which they are used
    std::map<SwitchId, Bytes> most_per_switch;           // only of switches with a limit
    Bytes free;                                          // of all devices that the host reaches
    Bytes capacity;                                      // and all memory of them
    Bytes largest_device;
    bool limited = false;  // a limit, not lack of memory, made `most` smaller or excluded a device
};

// Problems: unknown-host, host-not-reachable.
Outcome<Candidates> find_candidates(const Inventory& inventory, const PlacementRequest& request);

}  // namespace memtide::fm

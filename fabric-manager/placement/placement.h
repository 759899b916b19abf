#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/inventory.h"
#include "fabric-manager/model/problem.h"

// Where compositions go. Pure: nothing here changes the inventory or keeps anything.
namespace memtide::fm {

// Where one part will live.
struct PartPlacement {
    LdAddress memory;
    SerialNumber serial;  // 0 when the LD does not exist before the carve
    std::uint8_t port = 0;
    VppbAddress where;
    Bytes size;
    std::optional<Carve> carve;
};

struct Plan {
    std::vector<PartPlacement> parts;
    bool interleaved = false;         // all parts become one region
    std::vector<Exclusion> excluded;  // where asked for: what the host reaches and could not be used
};

struct PlacementRequest {
    HostId host;
    Bytes size;
    PlacementPolicy policy;
    std::optional<std::string> tenant;
    Bytes reserve;                         // stays free in the pool, unless the policy may use it
    std::uint8_t most_parts = kMostParts;  // fewer when the composition has some already
    LimitOrigins origins{};                // of the policy's limits, for explanations
    bool explain = false;                  // a plan says what was excluded, too; a refusal always does
    // For a part that joins others in an interleaved region: the only switch, and the devices of the others.
    std::optional<SwitchId> only_at{};
    std::vector<DeviceId> without{};
};

// Whether any fabric could give out so much in such a way. Problems: size-zero, size-not-multiple,
// bad-placement.
Outcome<> check_size(Bytes size, const PlacementPolicy& policy);

// Chooses devices, LDs and vPPBs. Refusals (Problem::code):
//   unknown-host, size-zero, size-not-multiple, bad-placement   the request cannot be met by any fabric
//   host-not-reachable, no-free-vppb                            the host has no way to memory (now)
//   exceeds-capacity, exceeds-largest-device                    there never is so much, or not in one piece
//   exceeds-free, no-fitting-device                             there is not so much now, or not like that
//   limit-exceeded, reserved                                    there is, but a limit forbids to use it
// Their detail says what was asked, what is free and what would fit; `excluded` says of each device that the
// host reaches what kept it out.
Outcome<Plan> place(const Inventory& inventory, const PlacementRequest& request);

}  // namespace memtide::fm

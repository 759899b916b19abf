#pragma once

#include <optional>

#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/inventory.h"
#include "fabric-manager/model/problem.h"

namespace memtide::fm {

// Where a composition will live.
struct Placement {
    LdAddress memory;
    SerialNumber serial;  // 0 when the LD does not exist before the carve
    std::uint8_t port = 0;
    VppbAddress where;
    std::optional<Carve> carve;
};

// First fit over the devices of the switches the host is attached to, in order of device id:
//   1. an LD with exactly the size that is free (one known to be clean before others), or a whole SLD of it;
//   2. an unallocated LD slot of an MLD with enough memory that no LD has;
//   3. free LDs of one MLD carved anew.
// Refusals (Problem::code): unknown-host, size-zero, size-not-multiple, host-not-reachable,
// exceeds-largest-device, no-free-vppb, exceeds-free, no-fitting-device; the detail says what would fit.
// Pure: neither changes the inventory nor keeps anything.
Outcome<Placement> place(const Inventory& inventory, const HostId& host, Bytes size);

}  // namespace memtide::fm

#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cxl-emul/faults/fault.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// What a fault strikes in a topology.
struct FaultPlace {
    std::vector<SwitchId> switches;    // those that it happens in
    std::optional<std::uint8_t> port;  // of the only switch there is then
    std::optional<DeviceId> device;
    std::optional<HostId> host;
};

// Which key of the fault is wrong, and how.
struct PlaceMistake {
    std::string key;
    std::string message;
};

// A port stands for the device that is at it, unless only the port's link is meant.
std::expected<FaultPlace, PlaceMistake> place_of(const Fault& fault, const Topology& topology);

}  // namespace memtide::emul

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace memtide::emul {

// What the helper in a guest reads from sysfs. `sysfs` is "/sys", or a made-up tree in tests.

struct GuestMemdev {
    std::string name;    // "mem0"
    std::string serial;  // "0x…"
    std::uint64_t size = 0;
};
std::vector<GuestMemdev> guest_memdevs(const std::string& sysfs);

// True when the CXL root with a decoder for its window is there, and at least `slots` PCIe hot-plug slots.
bool cxl_bus_is_enumerated(const std::string& sysfs, unsigned slots);

// Fails with kConflict when memory of the device in PCIe hot-plug slot `slot` is online in this kernel: the
// kernel would let the device go all the same, and lose what is in it. An empty slot, and a device without a
// region, are unused. kNotFound when there is no such slot.
Result<> check_slot_unused(const std::string& sysfs, unsigned slot);

}  // namespace memtide::emul

#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cxl-emul/switch/model.h"

namespace memtide::emul::test {

// What is wrong with dynamic capacity: memory that two hosts have or were offered without sharing it, or that
// is free at the same time.
inline std::string fault_of(const DynamicCapacity& memory) {
    struct Owned {
        std::size_t host;
        fmapi::DcExtent extent;
    };
    std::vector<Owned> owned;
    for (std::size_t host = 0; host < memory.hosts(); ++host) {
        for (const auto& extent : memory.accepted(host)) owned.push_back({host, extent});
        for (const auto& extent : memory.offered(host)) owned.push_back({host, extent});
    }
    if (owned.size() > memory.limits().extents) return "there are more extents than can be";
    if (memory.tags().size() > memory.limits().tags) return "there are more tags than can be";
    for (std::size_t i = 0; i < owned.size(); ++i) {
        const auto& [host, extent] = owned[i];
        const ByteRange range{extent.dpa, extent.dpa + extent.length};
        if (!memory.region_of(range)) return "an extent is in no region";
        if (memory.free_memory().overlaps(range)) return "memory of a host is free";
        for (std::size_t j = 0; j < i; ++j) {
            const auto& [other_host, other] = owned[j];
            if (other.dpa >= range.end || range.begin >= other.dpa + other.length) continue;
            if (host == other_host || extent.shared_sequence == 0 || !(extent == other))
                return "two hosts have the same memory";
        }
    }
    return "";
}

// What is wrong with a device's LDs: two that share memory, one beyond the device, one that is erased while a
// host has it, one that is taken by a vPPB which does not know.
inline std::string fault_of(const SwitchModel& model, const Device& device) {
    if (device.dynamic)
        if (auto fault = fault_of(device.dynamic->memory); !fault.empty()) return fault;
    std::vector<std::pair<Bytes, Bytes>> slices;  // from, to
    for (const Ld& ld : device.lds) {
        if (ld.size.value != 0) slices.emplace_back(ld.offset, ld.offset + ld.size);
        if (!ld.size.is_multiple_of(device.config.granularity))
            return "an LD is no multiple of the granularity";
        if (ld.offset + ld.size > device.config.size) return "an LD reaches beyond its device";
        if (!ld.taken_by) continue;
        if (ld.background.running) return "an LD is erased while a host has it";
        const VirtualBridge& bridge = model.bridge(*ld.taken_by);
        if (bridge.state == VirtualBridge::State::kUnbound || &model.ld_of(bridge) != &ld)
            return "an LD is taken by a vPPB that does not have it";
    }
    std::ranges::sort(slices);
    for (std::size_t i = 1; i < slices.size(); ++i)
        if (slices[i - 1].second > slices[i].first) return "two LDs share memory";
    return "";
}

// The first thing that must never be in a switch's state, or nothing.
inline std::string broken_invariant(const SwitchModel& model) {
    for (const Device& device : model.devices)
        if (auto fault = fault_of(model, device); !fault.empty()) return fault;
    std::set<const Ld*> reachable;
    std::set<unsigned> pids;
    for (const Vcs& vcs : model.vcss)
        for (const VirtualBridge& bridge : vcs.vppbs) {
            if (bridge.pid && !pids.insert(bridge.pid->pid).second) return "a PID is reachable by two vPPBs";
            if (bridge.state == VirtualBridge::State::kUnbound) continue;
            if (bridge.pid) return "a vPPB has an LD and a PID";
            const Ld& ld = model.ld_of(bridge);
            if (!reachable.insert(&ld).second) return "an LD is reachable by two vPPBs";
            if (!ld.taken_by) return "a vPPB has an LD that is free for others";
        }
    return "";
}

}  // namespace memtide::emul::test

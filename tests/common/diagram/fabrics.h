#pragma once

#include <fmt/format.h>

#include "common/diagram/fabric.h"

namespace memtide::diagram::test {

// hosts host0, ... each with a port at every one of switches switch0, ...; each switch has a device dev0, ...
// of its own with four LDs; LD h of each is bound at vPPB 0 of host h.
inline Fabric fabric_of(unsigned hosts, unsigned switches) {
    Fabric fabric;
    fabric.title = "test";
    for (unsigned h = 0; h < hosts; ++h)
        fabric.hosts.push_back({.name = fmt::format("host{}", h), .detail = "1GiB", .direct = {}});
    for (unsigned s = 0; s < switches; ++s) {
        Switch& one = fabric.switches.emplace_back();
        one.name = fmt::format("switch{}", s);
        Device& device = fabric.devices.emplace_back();
        device.name = fmt::format("dev{}", s);
        device.kind = "MLD";
        device.size = gibibytes(1);
        for (unsigned ld = 0; ld < 4; ++ld) {
            Ld& added = device.lds.emplace_back();
            added.name = std::to_string(ld);
            added.size = mebibytes(256);
        }
        for (unsigned h = 0; h < hosts; ++h) {
            one.ports.push_back({.id = h, .host = fmt::format("host{}", h), .device = {}});
            one.vcss.push_back({.id = h, .upstream_port = h, .vppbs = {{h, "", ""}, {1, "", ""}}});
            if (h >= device.lds.size()) continue;
            one.vcss.back().vppbs[0] = {0, device.name, std::to_string(h)};
            device.lds[h].use = LdUse::kBound;
            device.lds[h].host = fmt::format("host{}", h);
        }
        one.ports.push_back({.id = 200, .host = {}, .device = device.name});
    }
    return fabric;
}

}  // namespace memtide::diagram::test

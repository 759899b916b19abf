#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "cxl-emul/hosts/agent_credentials.h"
#include "cxl-emul/hosts/delay.h"
#include "cxl-emul/hosts/faults.h"
#include "cxl-emul/hosts/host_model.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// A fleet of emulated hosts and the switches they hang on, as the command line describes it.
struct FleetOptions {
    // A topology file that says which hosts, switches and devices there are, instead of everything down to
    // `heads`. Its switches listen where `listen` says.
    std::string topology;
    std::uint64_t count = 0;     // hosts
    std::uint64_t switches = 0;  // 0: one for each 32 hosts
    std::uint64_t devices = 4;   // behind each switch
    DeviceKind kind = DeviceKind::kMld;
    std::uint64_t lds = 16;       // of each MLD; of a DCD: the hosts that can have memory of it at a time
    Bytes ld_size = kCxlGranule;  // of an SLD: all of it; of a DCD: as much for each of these hosts
    std::uint64_t vppbs = 8;      // of each host
    // Above 1: each device has that many heads, at switches that follow each other, and its LDs are dealt out
    // to them.
    std::uint64_t heads = 1;
    // "tcp://127.0.0.1:0" (any ports), "tcp://127.0.0.1:2650" (that one and those that follow) or
    // "unix:///FOLDER" (FOLDER/switch0.sock, ...).
    std::string listen = "tcp://127.0.0.1:0";
    std::string manager = "http://127.0.0.1:8080";  // or https://, or unix:/PATH
    AgentCertificateFiles certificates;             // for https:// only
    std::chrono::milliseconds bind_time{0};
    std::chrono::milliseconds unbind_time{0};
    std::chrono::milliseconds erase_time{0};
    HostDelays delays;
    std::uint64_t seed = 1;
    std::vector<std::pair<HostFault, double>> faults;  // each with the share of hosts that have it, 0 to 1
};

// Of a file: its switches with their devices. kInvalidArgument and kNotFound with its mistakes, and when its
// hosts could not be emulated. Else: hosts host0, host1, ... dealt out to switches switch0, switch1, ... one
// after the other, each with a virtual switch of its own; the devices of switch N are dev-N-0, dev-N-1, ...
// kInvalidArgument with what is wrong when there can be no such fleet.
Result<Topology> plan_fleet(const FleetOptions& options);

// Those that have a virtual switch somewhere, in the order in which they are planned.
std::vector<HostId> fleet_hosts(const Topology& topology, const FleetOptions& options);

// The faults that each host has from the start; the same for the same seed.
std::vector<HostFaults> plan_faults(const FleetOptions& options);

}  // namespace memtide::emul

#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "cxl-emul/qemu/command_line.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// What all hosts of a rack have in common.
struct RackSettings {
    std::string program;  // this program's own path, as host and guests see it
    std::string kernel;
    std::string initramfs;
    std::string kernel_arguments;
    std::string manager;  // "127.0.0.1:8080"; empty: guests have no network
    Accelerator accelerator = Accelerator::kTcg;
};

// The plan of one host: pure. kInvalidArgument when the emulated machine cannot be as the topology wants it.
Result<HostPlan> plan_host(const Topology& topology, const HostConfig& host, const RackSettings& settings,
                           const std::string& folder);

// kNotFound that names the hosts there are.
Error no_such_host(const Topology& topology, const std::string& name);

// Where a device is: "mld0:1" -> the switch that has it, its port there, and the LD (FFFFh for an SLD).
struct DevicePlace {
    const SwitchConfig* in = nullptr;
    std::uint8_t port = 0;
    std::uint16_t ld = 0xffff;
};
// Of a multi-headed device it is where the head of the LD is; a head of a multi-headed SLD is the one where
// `host` is attached, or "sld0:1". kInvalidArgument, kConflict and kNotFound say what is wrong with `name`
// and what there is; so when `host` does not reach that head.
Result<DevicePlace> find_device(const Topology& topology, const std::string& name,
                                const std::string& host = {});

// The VCS of a host in a switch, or in the only switch that it has one in (`in` null).
struct VcsPlace {
    const SwitchConfig* in = nullptr;
    std::uint8_t vcs = 0;
    std::uint8_t vppbs = 0;
};
Result<VcsPlace> find_vcs(const Topology& topology, const std::string& host, const SwitchConfig* in);

}  // namespace memtide::emul

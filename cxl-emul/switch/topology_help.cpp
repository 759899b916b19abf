// What each key of a topology file means, for the explanation of mistakes.
#include <algorithm>
#include <array>
#include <utility>

#include "cxl-emul/switch/topology_findings.h"

namespace memtide::emul {
namespace {

constexpr std::string_view kMedia = "the folder of devices' memory, one sparse file each: /dev/shm (default)";
constexpr std::string_view kSerial =
    "a PCIe serial number, 0x and up to 16 hexadecimal digits; LD n has it + 1 + n";
constexpr std::string_view kSize = "all memory of the device, a multiple of 256MiB";
constexpr std::string_view kDeviceName = "what topology, media file and commands call the device: mld0";
constexpr std::string_view kKind = "sld (one logical device), mld (up to 16) or dcd (dynamic capacity)";
constexpr std::string_view kGranularity =
    "what an mld's LDs are multiples of: 256MiB (default), 512MiB or 1GiB";
constexpr std::string_view kLds = "the sizes of the LDs at power-on, 0 for none: [256MiB, 256MiB, 0]";
constexpr std::string_view kBandwidth = "what an mld's LDs share, in bytes a second: 32GiB (default)";
constexpr std::string_view kDemands = "what each LD's host would take, in bytes a second: [20GiB, 20GiB]";
constexpr std::string_view kTime = "emulated time that it takes, 0ms (default), 20ms, 2s";

constexpr std::array<std::pair<std::string_view, std::string_view>, 77> kKeys{{
    {"name", "the name of the topology, of its run folder and its media files: 1 to 63 of a-z, 0-9 and -"},
    {"switches", "the list of switches; none when all devices are in hosts"},
    {"switches.name", "what managers and commands call the switch: switch0"},
    {"switches.serial", "the switch's PCIe serial number; there is a default for each switch of a file"},
    {"switches.listen",
     "where managers connect: [tcp://127.0.0.1:2650] or [unix:///PATH], several if you like"},
    {"switches.connect",
     "managers that listen, to which the switch connects by itself: [tcp://127.0.0.1:2651]"},
    {"switches.dialect",
     "how the switch deviates from the specification: spec (default); docs/fm-api.md has the others"},
    {"switches.pbr", "what a port-based routing switch says of itself; {} for one with defaults"},
    {"switches.pbr.drts", "how many DPID routing tables it has, 1 to 255"},
    {"switches.pbr.rgts", "how many routing group tables it has, 0 to 255"},
    {"switches.pbr.routing_modes",
     "what it can do by itself: random, congestion-avoidance, advanced-congestion-avoidance"},
    {"switches.pbr.gae_vcss", "the virtual switches that have a global memory access endpoint, by id"},
    {"switches.media", kMedia},
    {"switches.bind_time", kTime},
    {"switches.unbind_time", kTime},
    {"switches.sanitize_time", kTime},
    {"switches.ports", "the list of physical ports: with a host, with a device, or empty slots"},
    {"switches.ports.id", "the number of a physical port, 0 to 254"},
    {"switches.ports.host", "the host whose root port is connected here: an upstream port"},
    {"switches.ports.device", "the device that is connected here: a downstream port"},
    {"switches.ports.switch", "the switch that is connected here, below this one"},
    {"switches.ports.upstream_port", "at which of its ports, by id"},
    {"switches.ports.head", "which head of a multi-headed device is here, from 0"},
    {"switches.vcss", "the list of virtual CXL switches, one for each host that shall see devices"},
    {"switches.vcss.id", "the number of a virtual switch, 0 to 254"},
    {"switches.vcss.upstream_port", "the id of the port whose host sees this virtual switch"},
    {"switches.vcss.vppbs", "how many devices the host can have behind it at once, 1 to 255 (32 in QEMU)"},
    {"switches.devices", "the list of devices with one head behind this switch; [] when there are none"},
    {"switches.devices.name", kDeviceName},
    {"switches.devices.kind", kKind},
    {"switches.devices.serial", kSerial},
    {"switches.devices.size", kSize},
    {"switches.devices.granularity", kGranularity},
    {"switches.devices.sanitize", "what comes of a sanitize: erases (default), does-nothing or fails"},
    {"switches.devices.lds", kLds},
    {"switches.devices.bandwidth", kBandwidth},
    {"switches.devices.demands", kDemands},
    {"switches.devices.hosts", "how many hosts a dcd can have, 1 to 16: each has an LD of it"},
    {"switches.devices.regions", "the list of a dcd's regions, up to eight: [{size: 1GiB, block: 2MiB}]"},
    {"switches.devices.regions.size", "how much memory the region has, a multiple of 256MiB"},
    {"switches.devices.regions.block", "what its extents are multiples of, a power of two"},
    {"switches.devices.regions.shareable",
     "whether several hosts may have an extent of it at once: false (default), true"},
    {"switches.devices.regions.sanitize",
     "whether what is released is erased before another host gets it: true, false"},
    {"switches.devices.extents", "how many extents a dcd can keep of all its hosts together"},
    {"switches.devices.tags", "how many tags a dcd can keep"},
    {"multi_headed_devices.bandwidth", kBandwidth},
    {"multi_headed_devices.demands", kDemands},
    {"multi_headed_devices", "the list of devices with several heads, which several switches or hosts share"},
    {"multi_headed_devices.name", kDeviceName},
    {"multi_headed_devices.kind", kKind},
    {"multi_headed_devices.serial", kSerial},
    {"multi_headed_devices.size", kSize},
    {"multi_headed_devices.heads", "how many heads the device has, 2 to 16"},
    {"multi_headed_devices.granularity", kGranularity},
    {"multi_headed_devices.lds", kLds},
    {"multi_headed_devices.ld_heads",
     "the head that each LD belongs to, as many as there are LDs: [0, 0, 1, 1]"},
    {"multi_headed_devices.media", kMedia},
    {"hosts", "the list of QEMU hosts for `rack`; a file without it may name any hosts at ports"},
    {"hosts.name", "what commands, managers and the guest itself call the host: host0"},
    {"hosts.memory", "the host's own memory, 1GiB (default)"},
    {"hosts.cpus", "how many processors the host has, 1 to 255; 2 by default"},
    {"hosts.kernel",
     "the version of its kernel, of those that scripts/setup unpacks: \"7.3\"; 6.12 by default"},
    {"hosts.media", kMedia},
    {"hosts.devices", "the list of devices on root ports of the host, without a switch"},
    {"hosts.devices.name", kDeviceName},
    {"hosts.devices.serial", "a PCIe serial number, 0x and up to 16 hexadecimal digits"},
    {"hosts.devices.size", kSize},
    {"hosts.heads", "the list of heads of multi-headed devices in the host, without a switch"},
    {"hosts.heads.device", "the name of a device under multi_headed_devices"},
    {"hosts.heads.head", "which of its heads is in this host, from 0"},
    {"hosts.numa_nodes", "the list of NUMA nodes of RAM beside the host's own, without processors"},
    {"hosts.numa_nodes.size", "how much memory the node has: 768MiB"},
    {"hosts.numa_nodes.latency_ns", "what the firmware says of a read, 1 to 10000; 250 by default"},
    {"hosts.numa_nodes.bandwidth", "what the firmware says, in bytes a second: 16GiB (default)"},
    {"networks", "the list of RDMA networks, each between two QEMU hosts"},
    {"networks.name", "the name of the interface in both hosts, at most 15 characters: rdma0"},
    {"networks.hosts", "the two hosts that it connects: [host0, host1]"},
}};

}  // namespace

std::string_view meaning_of_key(std::string_view key_path) {
    const auto* const found =
        std::ranges::find(kKeys, key_path, &std::pair<std::string_view, std::string_view>::first);
    return found == kKeys.end() ? std::string_view() : found->second;
}

}  // namespace memtide::emul

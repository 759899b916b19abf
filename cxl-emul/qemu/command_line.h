#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace memtide::emul {

enum class Accelerator { kTcg, kKvm };
std::string_view to_string(Accelerator accelerator);

// One virtual CXL switch as a host sees it: a root port, an upstream port, and a downstream port a vPPB.
struct VcsPorts {
    std::string switch_name;
    std::uint8_t vcs = 0;
    std::uint8_t vppbs = 0;
};

// Where a vPPB is in the host: the QEMU id of its downstream port and the number of its PCIe hot-plug slot,
// as in the guest's /sys/bus/pci/slots.
struct PortPlace {
    std::string id;
    unsigned slot = 0;
};

// A type-3 device that is in the host from power-on, on a root port of its own (no switch, no hot-plug).
struct DirectDevice {
    std::string name;
    std::string media;
    Bytes offset;
    Bytes size;
    SerialNumber serial;
};

// Memory of the host beside its own, as a NUMA node without processors: ordinary RAM that the firmware tables
// (SRAT, SLIT and HMAT) call slower. It is as fast as the host's own in truth.
struct SlowNode {
    Bytes size;
    unsigned latency_ns = 250;        // of a read, from the processors
    Bytes bandwidth = gibibytes(16);  // a second; a multiple of 1GiB
};
// What the tables say of the host's own memory, node 0.
inline constexpr unsigned kOwnLatencyNs = 100;
inline constexpr Bytes kOwnBandwidth = gibibytes(64);

// One end of a cable between two hosts: a network card in the guest, whose name and address its init sets.
struct NetworkPort {
    std::string name;      // of the interface in the guest
    std::string socket;    // a unix socket that the cable is
    bool listens = false;  // this end of it; the other one connects, and again when it is lost
    std::string mac;
    std::string address;  // "10.77.0.1/24"
    std::string peer;     // name of the host at the other end, and its address
    std::string peer_address;
};
// Room for RoCEv2 packets with 4096 bytes of payload.
inline constexpr unsigned kNetworkMtu = 4200;

// Descriptors that a QEMU process inherits; each is one end of a socket pair.
struct HostDescriptors {
    int qmp = 3;
    int console = 4;
    int guest = 5;
};

// Name of the virtio-serial port of the guest helper, and QEMU's id of it.
inline constexpr const char* kGuestPortName = "memtide.guest";
inline constexpr const char* kGuestPortId = "guestport";
// Where a guest finds the fabric manager, when the rack has one.
inline constexpr const char* kManagerUrlInGuest = "http://10.0.2.101:8080";
inline constexpr const char* kSecureManagerUrlInGuest = "https://10.0.2.101:8080";

// All that decides how one host is run. Plain data; the command line is a pure function of it.
struct HostPlan {
    std::string name;
    Bytes memory = gibibytes(1);
    unsigned cpus = 1;
    Accelerator accelerator = Accelerator::kTcg;
    std::string kernel;
    std::string initramfs;
    std::string kernel_arguments;  // appended to our own
    std::vector<VcsPorts> vcss;
    std::vector<DirectDevice> direct;
    std::vector<NetworkPort> networks;
    std::vector<SlowNode> numa_nodes;  // nodes 1 and up
    Bytes window;                      // room for CXL memory in the host's address map
    std::string monitor_socket;        // a second QMP server for people; empty: none
    std::vector<std::string> relay;    // program for guest connections to the manager; empty: no network
};

// argv of qemu-system-x86_64.
std::vector<std::string> qemu_command_line(const HostPlan& plan, const HostDescriptors& descriptors);
// Place of a vPPB; kNotFound when the host has no such vPPB.
Result<PortPlace> port_place(const HostPlan& plan, const std::string& switch_name, std::uint8_t vcs,
                             std::uint8_t vppb);
// Limits of the emulated machine (slots on a bus, bus numbers); kInvalidArgument says which one is crossed.
Result<> check_plan(const HostPlan& plan);

}  // namespace memtide::emul

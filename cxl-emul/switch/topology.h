#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/fmapi/dialect.h"
#include "cxl-emul/switch/endpoint.h"

// A topology file as plain data: what `memtide-cxl-emul switch` and `rack` read.
// config/topologies/one-switch-one-mld.yaml explains every key.
namespace memtide {
class YamlDocument;
}

namespace memtide::emul {

inline constexpr unsigned kMaxLds = 16;  // of an MLD (CXL 3.1, 2.4)
inline constexpr unsigned kMaxHeads = 16;

// The other end of a cable between two switches: a switch and its upstream port there, which the host of that
// port reaches through the upper switch.
struct CascadeConfig {
    SwitchId below;
    std::uint8_t upstream_port = 0;
};

// A physical port: upstream when it has a host, downstream when it has a device, a switch or neither (an
// empty slot).
struct PortConfig {
    std::uint8_t id = 0;
    std::optional<HostId> host;
    std::optional<DeviceId> device;
    std::uint8_t head = 0;  // of a multi-headed device: which of its heads is here
    std::optional<CascadeConfig> cascade = std::nullopt;
};

struct VcsConfig {
    std::uint8_t id = 0;
    std::uint8_t upstream_port = 0;
    std::uint8_t vppbs = 0;
};

// kDcd: a dynamic capacity device, an MLD whose LDs have no memory but what is added to them.
enum class DeviceKind { kSld, kMld, kDcd };

// What comes of a sanitize: the media is erased; success although nothing was done; an error.
enum class SanitizeEffect { kErases, kDoesNothing, kFails };

// A region of a dynamic capacity device; they follow each other from DPA 0 on.
struct DcRegionConfig {
    Bytes size;
    Bytes block = kCxlGranule;
    bool shareable = false;
    bool sanitize = true;  // on release
};

inline constexpr std::uint32_t kMostDcExtents = 1024;

struct DeviceConfig {
    DeviceId name;
    DeviceKind kind = DeviceKind::kSld;
    SerialNumber serial;
    Bytes size;
    Bytes granularity = kCxlGranule;  // of an MLD's allocations
    SanitizeEffect sanitize = SanitizeEffect::kErases;
    // An MLD's allocation per LD after power-on, 0 = none. Of an SLD empty; of a multi-headed one, what each
    // head has; of a DCD an empty one for each host.
    std::vector<Bytes> lds;
    unsigned heads = 1;                  // above 1: at as many ports, of one or several switches
    std::vector<std::uint8_t> ld_heads;  // which head has which LD; empty with one head
    std::string media = "/dev/shm";      // folder of its media file; with one head the switch's counts
    Bytes bandwidth = gibibytes(32);     // of an MLD, a second: what quality of service shares out
    std::vector<Bytes> demands;          // by LD, a second: what its host would take; empty: nothing
    // Of a DCD, whose size is theirs together.
    std::vector<DcRegionConfig> regions;
    std::uint32_t max_extents = 512;  // in the lists and offers of all its hosts
    std::uint32_t max_tags = 64;

    [[nodiscard]] bool is_multi_headed() const { return heads > 1; }
    // Whether the LD is one that hosts reach through this head.
    [[nodiscard]] bool is_at_head(std::size_t ld, std::uint8_t head) const;
    // What the host that gets the LD sees: serial itself for an SLD with one head, else serial + 1 + ld.
    [[nodiscard]] SerialNumber ld_serial(unsigned ld) const;
};

// What a switch that routes by port says that it can do (IdentifyPbrSwitchResponse).
struct PbrConfig {
    std::uint8_t drts = 1;
    std::uint8_t rgts = 0;
    std::uint8_t routing_modes = 0;
    std::uint64_t gae_vcss = 0;
};

struct SwitchConfig {
    SwitchId name;
    SerialNumber serial;
    std::vector<Endpoint> listen;
    std::vector<Endpoint> connect;  // managers that listen for it
    const fmapi::Dialect* dialect = &fmapi::spec_dialect();
    std::string media = "/dev/shm";  // folder of the devices' media files
    // Emulated time, beside what the hosts and the media really take.
    std::chrono::milliseconds bind_time{0};
    std::chrono::milliseconds unbind_time{0};
    std::chrono::milliseconds sanitize_time{0};
    std::optional<PbrConfig> pbr;  // none: it routes by hierarchy only
    std::vector<PortConfig> ports;
    std::vector<VcsConfig> vcss;
    std::vector<DeviceConfig> devices;  // its own, then the multi-headed ones that have a head here

    [[nodiscard]] const PortConfig* port(std::uint8_t id) const;
    [[nodiscard]] const DeviceConfig* device(const DeviceId& name) const;
    // The virtual switch of a host; a host has at most one in each switch.
    [[nodiscard]] const VcsConfig* vcs_of(const HostId& host) const;
};

// A device on a root port of its own in a host: no switch, no manager, there from power-on.
struct DirectDeviceConfig {
    DeviceId name;
    SerialNumber serial;
    Bytes size;
};

// A head of a multi-headed device on a root port of a host: its LDs are in the host from power-on.
struct DirectHeadConfig {
    DeviceId device;
    std::uint8_t head = 0;
};

// Memory of a host beside its own: a NUMA node of ordinary RAM that the firmware calls slower.
struct NumaNodeConfig {
    Bytes size;
    unsigned latency_ns = 250;
    Bytes bandwidth = gibibytes(16);  // a second
};
inline constexpr std::size_t kMaxNumaNodes = 8;  // of a host beside its own

struct HostConfig {
    HostId name;
    Bytes memory = gibibytes(1);
    unsigned cpus = 2;
    std::string kernel;              // "7.3": of the kernels that scripts/setup unpacks; empty: the usual one
    std::string media = "/dev/shm";  // folder of its own devices' media files
    std::vector<DirectDeviceConfig> devices;
    std::vector<DirectHeadConfig> heads;
    std::vector<NumaNodeConfig> numa_nodes;  // numbered from 1
};

// An Ethernet cable between two QEMU hosts, with an RDMA device (RoCEv2) at both ends.
struct NetworkConfig {
    std::string name;  // of the interface in both
    std::vector<HostId> hosts;
};

inline constexpr std::size_t kLongestInterfaceName = 15;  // IFNAMSIZ, without its end
inline constexpr std::size_t kMaxNetworks = 256;          // each has a subnet of its own

struct Topology {
    std::string name;
    std::vector<SwitchConfig> switches;
    std::vector<HostConfig> hosts;
    std::vector<DeviceConfig> multi_headed;
    std::vector<NetworkConfig> networks;

    [[nodiscard]] const SwitchConfig* find_switch(const SwitchId& switch_name) const;
    [[nodiscard]] const HostConfig* find_host(const HostId& host) const;
    [[nodiscard]] const DeviceConfig* find_multi_headed(const DeviceId& device) const;
    // <media>/memtide-<topology>-<device>.media
    [[nodiscard]] std::string media_file(const SwitchConfig& in, const DeviceConfig& device) const;
    [[nodiscard]] std::string media_file(const HostConfig& in, const DirectDeviceConfig& device) const;
    // Of a multi-headed device, wherever its heads are.
    [[nodiscard]] std::string media_file(const DeviceConfig& multi_headed_device) const;
};

// Every host of the file, listed or at a port, each once: in the order of `hosts`, then of the ports.
std::vector<HostId> all_hosts(const Topology& topology);

// Reads and checks a whole file. Errors (kInvalidArgument, kNotFound) have a line "FILE:LINE:COLUMN: what is
// wrong" for each mistake. Ports may name hosts freely when there is no `hosts` section at all.
Result<Topology> load_topology(const std::string& path);
// As load_topology(), for text that is already there; `name` stands for the file's name in errors.
Result<Topology> parse_topology(std::string_view text, std::string name);
// What the two above do with a document. Its mistakes are recorded there, all of them at once, and what is
// hardly meant as well (document.remarks()); with mistakes the answer is of no use.
Topology read_topology(const YamlDocument& document);

}  // namespace memtide::emul

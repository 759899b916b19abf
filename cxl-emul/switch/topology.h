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
#include "cxl-emul/switch/endpoint.h"

// A topology file as plain data: what `memtide-cxl-emul switch` and `rack` read.
// config/topologies/one-switch-one-mld.yaml explains every key.
namespace memtide {
class YamlDocument;
}

namespace memtide::emul {

inline constexpr unsigned kMaxLds = 16;  // of an MLD (CXL 3.1, 2.4)
inline constexpr unsigned kMaxHeads = 16;

// A physical port: upstream when it has a host, downstream when it has a device or neither (an empty slot).
struct PortConfig {
    std::uint8_t id = 0;
    std::optional<HostId> host;
    std::optional<DeviceId> device;
    std::uint8_t head = 0;  // of a multi-headed device: which of its heads is here
};

struct VcsConfig {
    std::uint8_t id = 0;
    std::uint8_t upstream_port = 0;
    std::uint8_t vppbs = 0;
};

enum class DeviceKind { kSld, kMld };

// What comes of a sanitize: the media is erased; success although nothing was done; an error.
enum class SanitizeEffect { kErases, kDoesNothing, kFails };

struct DeviceConfig {
    DeviceId name;
    DeviceKind kind = DeviceKind::kSld;
    SerialNumber serial;
    Bytes size;
    Bytes granularity = kCxlGranule;  // of an MLD's allocations
    SanitizeEffect sanitize = SanitizeEffect::kErases;
    // An MLD's allocation per LD after power-on, 0 = none. Of an SLD empty; of a multi-headed one, what each
    // head has.
    std::vector<Bytes> lds;
    unsigned heads = 1;                  // above 1: at as many ports, of one or several switches
    std::vector<std::uint8_t> ld_heads;  // which head has which LD; empty with one head
    std::string media = "/dev/shm";      // folder of its media file; with one head the switch's counts

    [[nodiscard]] bool is_multi_headed() const { return heads > 1; }
    // Whether the LD is one that hosts reach through this head.
    [[nodiscard]] bool is_at_head(std::size_t ld, std::uint8_t head) const;
    // What the host that gets the LD sees: serial itself for an SLD with one head, else serial + 1 + ld.
    [[nodiscard]] SerialNumber ld_serial(unsigned ld) const;
};

struct SwitchConfig {
    SwitchId name;
    SerialNumber serial;
    std::vector<Endpoint> listen;
    std::string media = "/dev/shm";  // folder of the devices' media files
    // Emulated time, beside what the hosts and the media really take.
    std::chrono::milliseconds bind_time{0};
    std::chrono::milliseconds unbind_time{0};
    std::chrono::milliseconds sanitize_time{0};
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

struct HostConfig {
    HostId name;
    Bytes memory = gibibytes(1);
    unsigned cpus = 2;
    std::string media = "/dev/shm";  // folder of its own devices' media files
    std::vector<DirectDeviceConfig> devices;
    std::vector<DirectHeadConfig> heads;
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

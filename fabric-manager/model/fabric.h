#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "fabric-manager/model/device_health.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

// Where a virtual bridge is: the vPPB `vppb` of the virtual switch `vcs` of a switch.
struct VppbAddress {
    SwitchId switch_id;
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
    friend auto operator<=>(const VppbAddress&, const VppbAddress&) = default;
};

// Which memory: logical device `ld` of the device `device` (kWholeDevice for an SLD).
struct LdAddress {
    DeviceId device;
    LdId ld;
    friend auto operator<=>(const LdAddress&, const LdAddress&) = default;
};

// Names a part among all compositions (see Composition).
struct PartId {
    CompositionId composition;
    std::uint32_t number = 0;
    friend auto operator<=>(const PartId&, const PartId&) = default;
};

// --- Switch ---

enum class PortRole { kUnused, kUpstream, kDownstream };

// A physical port as Get Physical Port State shows it (CXL 3.1, 7.6.7.1.2).
struct Port {
    std::uint8_t id = 0;
    PortRole role = PortRole::kUnused;
    bool link_up = false;
    std::uint8_t link_width = 0;     // lanes in use
    std::uint8_t supported_lds = 0;  // of the attached MLD, 0 otherwise
    std::optional<DeviceId> device;  // what hangs on a downstream port
};

enum class BindingStatus { kUnbound, kInProgress, kBoundPort, kBoundLd };

// A virtual PCI-to-PCI bridge and what it is bound to (CXL 3.1, 7.6.7.2.1).
struct Vppb {
    std::uint8_t id = 0;
    BindingStatus status = BindingStatus::kUnbound;
    std::uint8_t port = 0;   // valid when bound
    LdId ld = kWholeDevice;  // valid when bound to an LD
    std::optional<PartId> owner;
};

struct Vcs {
    std::uint8_t id = 0;
    bool enabled = true;
    std::uint8_t upstream_port = 0;
    std::optional<HostId> host;  // from the manager's configuration
    std::vector<Vppb> vppbs;
};

struct Switch {
    SwitchId id;
    std::string address;            // "tcp://127.0.0.1:2650"
    bool up = false;                // answered the last time it was asked
    bool inventoried = false;       // what follows has been read at least once
    std::string error;              // why it is not up
    std::string dialect;            // of the FM API as it speaks it; empty until that is known
    bool dialect_detected = false;  // from its answers, not by configuration
    std::size_t in_flight = 1;      // commands that it is sent before it has answered the first
    std::string held;  // why nothing new is placed behind it, while it comes and goes; empty otherwise
    std::optional<Time> last_seen;
    std::vector<Port> ports;
    std::vector<Vcs> vcss;
};

// --- Devices ---

enum class DeviceKind {
    kSld,
    kMld,
    kDcd,  // dynamic capacity: an MLD whose LDs have what is added to their hosts, in extents
};
constexpr std::string_view to_string(DeviceKind kind) {  // as REST and names have it
    switch (kind) {
        case DeviceKind::kSld:
            return "sld";
        case DeviceKind::kMld:
            return "mld";
        case DeviceKind::kDcd:
            return "dcd";
    }
    return "sld";
}
// Whether its LDs get their memory when they are asked to have some.
constexpr bool is_divided(DeviceKind kind) { return kind != DeviceKind::kSld; }

// What can be done with a logical device's memory now.
enum class LdUse {
    kUnallocated,  // size 0: a slot of an MLD that has no memory yet
    kFree,
    kReserved,     // given to a composition that has not bound it yet, or is erasing it
    kBound,        // reachable by a host
    kQuarantined,  // could not be erased: kept out of the pool
    kForeign,      // bound where no configured host is, or added there by someone else: not ours to touch
};

struct LogicalDevice {
    LdId id = kWholeDevice;
    SerialNumber serial;  // 0 when the device has not told it
    Bytes size;
    std::optional<Bytes> planned;  // the size it gets when the carve of `owner` is done
    LdUse use = LdUse::kFree;
    bool quarantined = false;
    bool clean = false;  // erased by this manager since anyone could write to it
    std::optional<PartId> owner;
    std::optional<VppbAddress> bound_at;
    std::optional<std::uint8_t> head;  // of a multi-headed device: through which alone hosts reach it
    // Of a dynamic capacity device: `size` is what its host has accepted or, while it has yet to accept what
    // the owner is to get, all of that.
    bool dynamic = false;
    Bytes accepted;
    std::optional<bool> pending;  // whether the device says that an offer waits; nullopt: it does not tell
    bool offered = false;         // not all of `size` has been accepted yet
};

// A head of a multi-headed device where it is connected.
struct Head {
    std::uint8_t number = 0;  // as the device's LD map names it
    SwitchId switch_id;
    std::uint8_t port = 0;
    friend bool operator==(const Head&, const Head&) = default;
};

// A size of which the device refused to make one LD, although so much of it was free: what is free is not in
// one piece, or it has rules of its own.
struct RefusedCarve {
    std::optional<std::uint8_t> head;  // of a multi-headed device: through which it was asked
    Bytes size;
    std::vector<LdId> lds;  // whose memory it could have taken; with that of others it may be possible
    friend bool operator==(const RefusedCarve&, const RefusedCarve&) = default;
};

struct Device {
    DeviceId id;  // "mld-4d54000100000000": kind and serial number
    // Where it is; of a multi-headed device one of its heads, `heads` has all.
    SwitchId switch_id;
    std::uint8_t port = 0;
    DeviceKind kind = DeviceKind::kMld;
    SerialNumber serial;
    Bytes size;                          // all memory of the device
    Bytes granularity = kCxlGranule;     // LD sizes are multiples of it
    bool present = true;                 // a port shows it now
    std::string held;                    // why nothing new is placed on it, while it comes and goes
    std::optional<DeviceHealth> health;  // as it said last; nullopt when it never did
    std::string unfit;                   // why nothing new is placed on it for its health
    std::vector<LogicalDevice> lds;
    std::uint8_t head_count = 1;               // heads that it says it has
    std::vector<Head> heads;                   // those that a port shows now; empty when it has one only
    std::vector<RefusedCarve> refused_carves;  // since its allocation changed last

    [[nodiscard]] bool is_multi_headed() const { return head_count > 1; }
    // Its head at that port or, without a port, at that switch; nullptr when there is none.
    [[nodiscard]] const Head* head_at(const SwitchId& id, std::optional<std::uint8_t> at_port = {}) const;
};

// Whether hosts reach the LD through this head; any LD of a device with one head, for which it is nullptr.
inline bool is_reached(const LogicalDevice& ld, const Head* through) {
    return through == nullptr || ld.head == through->number;
}

// --- Hosts ---

struct HostAttachment {
    SwitchId switch_id;
    std::uint8_t vcs = 0;
    friend auto operator<=>(const HostAttachment&, const HostAttachment&) = default;
};

struct HostMemdev {
    std::string name;  // "mem0"
    SerialNumber serial;
    Bytes size;
};

// A CXL window of the host (CFMWS), as its agent sees it.
struct HostWindow {
    std::string name;       // "decoder0.0"
    std::uint8_t ways = 1;  // host bridges that it interleaves
    Bytes size;
    Bytes largest_free;
    friend bool operator==(const HostWindow&, const HostWindow&) = default;
};

struct Warning {
    std::string code;
    std::string detail;
    friend bool operator==(const Warning&, const Warning&) = default;
};

struct Host {
    HostId id;
    std::vector<HostAttachment> attach;  // from the configuration
    std::string held;                    // why it gets nothing new, while it reboots all the time
    std::uint64_t revision = 0;          // of its desired state
    std::optional<Time> last_report;     // nullopt: its agent never reported to this process
    std::string agent_version;
    std::string boot_id;
    std::uint64_t revision_seen = 0;
    Bytes composed;  // sum of its compositions that have not ended
    std::vector<HostMemdev> memdevs;
    std::vector<HostWindow> windows;
    std::vector<Warning> warnings;
};

// --- Sums ---

// capacity = free + composed + quarantined + foreign. `stranded` is the part of `free` that no request can
// get whole: memory of devices that are not present or whose switch is down.
struct PoolDevice {
    DeviceId id;
    DeviceKind kind = DeviceKind::kMld;
    Bytes capacity;
    Bytes free;
    Bytes composed;
    Bytes quarantined;
    Bytes foreign;
    Bytes stranded;
    Bytes largest_free;  // the largest composition this device could take now
};
struct Pool {
    Bytes capacity;
    Bytes free;
    Bytes composed;
    Bytes quarantined;
    Bytes foreign;
    Bytes stranded;
    Bytes largest_free;
    std::vector<PoolDevice> devices;
};

struct Topology {
    std::vector<Host> hosts;
    std::vector<Switch> switches;
    std::vector<Device> devices;
};

}  // namespace memtide::fm

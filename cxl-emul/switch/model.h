#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "common/base/bytes.h"
#include "common/fmapi/commands.h"
#include "common/fmapi/message.h"
#include "common/fmapi/return_code.h"
#include "cxl-emul/switch/event_log.h"
#include "cxl-emul/switch/topology.h"

// The switch and its devices as plain data. The commands (commands.h) change it; nothing here does I/O.
namespace memtide::emul {

// Messages of a component are at most 2^16 bytes long, and its responses no longer than it was told to keep
// them (0004h).
inline constexpr std::uint8_t kLargestMessage = 16;
inline constexpr std::uint8_t kSmallestResponseLimit = 8;

// What every component has: a switch, the FM-owned LD of an MLD, an LD, an SLD.
struct Component {
    std::uint8_t response_limit = kLargestMessage;
    // The one background operation, or the last one (CXL 3.1, 8.2.9.1.2).
    struct Background {
        bool running = false;
        unsigned percent = 0;
        fmapi::Opcode opcode{};
        fmapi::ReturnCode return_code = fmapi::ReturnCode::kSuccess;
        bool can_abort = false;
        bool abort_requested = false;
    } background;
};

struct VppbId {
    std::size_t vcs = 0;  // index, not id
    std::uint8_t vppb = 0;
    friend bool operator==(const VppbId&, const VppbId&) = default;
};

// A logical device: one of an MLD's, or all there is of an SLD.
struct Ld : Component {
    Bytes offset;  // of its slice in the media file
    Bytes size;    // 0: no memory allocated
    // Taken from the moment a bind starts until an unbind has ended, so that no two hosts ever reach it.
    std::optional<VppbId> taken_by;
};

struct Device : Component {
    DeviceConfig config;
    std::vector<Ld> lds;
    [[nodiscard]] bool is_mld() const { return config.kind == DeviceKind::kMld; }
    [[nodiscard]] bool is_taken() const;
};

struct Port {
    PortConfig config;
    std::optional<std::size_t> device;  // index into SwitchModel::devices
    bool perst_asserted = false;
    bool host_link_up = true;                              // of an upstream port
    bool device_link_up = true;                            // of a downstream port
    bool device_plugged = true;                            // the same
    std::map<std::uint16_t, std::uint32_t> config_writes;  // registers of the bridge that were written
};

// What is behind a port now: nothing while the link is down.
std::optional<std::size_t> reachable_device(const Port& port);

struct VirtualBridge {
    enum class State { kUnbound, kBinding, kBound, kUnbinding } state = State::kUnbound;
    // Valid unless unbound.
    std::size_t port = 0;  // index
    std::size_t ld = 0;
};

struct Vcs {
    VcsConfig config;
    std::vector<VirtualBridge> vppbs;
};

struct SwitchModel : Component {
    SerialNumber serial;
    std::vector<Port> ports;
    std::vector<Vcs> vcss;
    std::vector<Device> devices;
    EventLogs events;

    // As after power-on: nothing bound, LDs allocated as the topology says, one behind the other.
    explicit SwitchModel(const SwitchConfig& config);

    // Indices by id.
    [[nodiscard]] std::optional<std::size_t> find_port(std::uint8_t id) const;
    [[nodiscard]] std::optional<std::size_t> find_vcs(std::uint8_t id) const;
    [[nodiscard]] VirtualBridge& bridge(VppbId id) { return vcss[id.vcs].vppbs[id.vppb]; }
    [[nodiscard]] const VirtualBridge& bridge(VppbId id) const { return vcss[id.vcs].vppbs[id.vppb]; }
    // The device and LD of a bridge that is not unbound.
    [[nodiscard]] const Device& device_of(const VirtualBridge& bridge) const;
    [[nodiscard]] const Ld& ld_of(const VirtualBridge& bridge) const;
    [[nodiscard]] Ld& ld_of(const VirtualBridge& bridge);
};

// Background operations that a command has started and somebody else has to carry out.
struct BindOperation {
    VppbId vppb;
};
struct UnbindOperation {
    VppbId vppb;
    fmapi::UnbindOption option{};
};
struct SanitizeOperation {
    std::size_t device = 0;
    std::size_t ld = 0;
};
using Operation = std::variant<BindOperation, UnbindOperation, SanitizeOperation>;

// The component whose background operation it is.
Component& component_of(SwitchModel& model, const Operation& operation);

// Records how an operation ended, which must be the running one: a bind has bound or left the vPPB unbound,
// an unbind has unbound or left it bound.
void finish(SwitchModel& model, const Operation& operation, fmapi::ReturnCode code);

}  // namespace memtide::emul

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include <boost/iterator/indirect_iterator.hpp>

#include "common/base/bytes.h"
#include "common/fmapi/commands.h"
#include "common/fmapi/message.h"
#include "common/fmapi/return_code.h"
#include "cxl-emul/switch/dynamic_capacity.h"
#include "cxl-emul/switch/event_log.h"
#include "cxl-emul/switch/pci_function.h"
#include "cxl-emul/switch/qos.h"
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

// What an LD is promised and allowed of its device's bandwidth, and what its host would take of it.
struct LdQos {
    std::uint8_t allocated = 0;  // in 256ths
    std::uint8_t limit = 0;      // the same; 0: none
    std::uint64_t demand = 0;    // bytes a second, while a host has the LD
};

// A logical device: one of an MLD's, or all there is of an SLD.
struct Ld : Component {
    Bytes offset;  // of its slice in the media file
    Bytes size;    // 0: no memory allocated
    // Taken from the moment a bind starts until an unbind has ended, so that no two hosts ever reach it. Of
    // the switch at the LD's head.
    std::optional<VppbId> taken_by;
    LdQos qos;
    PciFunction pci;
};

// What a DCD has beside its LDs: memory that is theirs in extents, what it tells the fabric manager of them,
// and what it tells each host.
struct DcdState {
    DynamicCapacity memory;
    EventLogs events;
    std::vector<EventLogs> host_events;  // by LD
    std::vector<bool> interrupts{};      // by LD: whether its host has yet to be told of new records
    // Moves what happened to the memory into the logs.
    void log_events();
};

struct Device : Component {
    DeviceConfig config;
    std::vector<Ld> lds;
    std::optional<DcdState> dynamic;  // of a DCD
    fmapi::GetHealthInfoResponse health{.life_used = 0, .temperature = 35};
    fmapi::QosControl qos;
    PciFunction pci;  // the FM-owned LD of an MLD
    [[nodiscard]] bool is_mld() const { return config.kind != DeviceKind::kSld; }  // or a DCD
    // Any LD of that head.
    [[nodiscard]] bool is_taken(std::uint8_t head) const;
};
// What each LD of the device gets of its bandwidth now; one without a host takes nothing.
BandwidthShares bandwidth_of(const Device& device);

// As after power-on: LDs allocated as the configuration says, one behind the other.
std::shared_ptr<Device> make_device(const DeviceConfig& config);

// Devices of a switch. Those with several heads are shared with the switches at their other heads, which is
// why such switches must run on one thread.
class Devices {
  public:
    void add(std::shared_ptr<Device> device) { all_.push_back(std::move(device)); }
    [[nodiscard]] std::size_t size() const { return all_.size(); }
    Device& operator[](std::size_t index) { return *all_[index]; }
    const Device& operator[](std::size_t index) const { return *all_[index]; }
    [[nodiscard]] auto begin() const { return boost::make_indirect_iterator(all_.begin()); }
    [[nodiscard]] auto end() const { return boost::make_indirect_iterator(all_.end()); }

  private:
    std::vector<std::shared_ptr<Device>> all_;
};
using SharedDevices = std::map<DeviceId, std::shared_ptr<Device>>;

struct Port {
    PortConfig config;
    std::optional<std::size_t> device;  // index into SwitchModel::devices
    bool perst_asserted = false;
    bool host_link_up = true;                              // of an upstream port
    bool device_link_up = true;                            // of a downstream port
    bool device_plugged = true;                            // the same
    std::map<std::uint16_t, std::uint32_t> config_writes;  // registers of the bridge that were written
};

// The only LD of an SLD, or of an SLD's head.
std::optional<std::size_t> ld_of_sld(const Device& device, std::uint8_t head);

// What is behind a port now: nothing while the link is down.
std::optional<std::size_t> reachable_device(const Port& port);

struct VirtualBridge {
    enum class State { kUnbound, kBinding, kBound, kUnbinding } state = State::kUnbound;
    // Valid unless unbound.
    std::size_t port = 0;  // index
    std::size_t ld = 0;
    // Bound, or about to be, to something elsewhere in the fabric of a PBR switch; `state` is kUnbound then.
    struct Pid {
        State state = State::kBinding;
        std::uint16_t pid = 0;
        fmapi::RouteCost cost;
    };
    std::optional<Pid> pid;

    [[nodiscard]] bool is_free() const { return state == State::kUnbound && !pid; }
};

struct Vcs {
    VcsConfig config;
    std::vector<VirtualBridge> vppbs;
    bool enabled = true;
    bool exists = true;  // a removed one leaves its place, for others know theirs by index
};

struct SwitchModel : Component {
    SerialNumber serial;
    std::vector<Port> ports;
    std::vector<Vcs> vcss;
    Devices devices;
    EventLogs events;
    fmapi::EventInterruptPolicy interrupts;
    std::optional<fmapi::DomainValidationValue> domain_validation;  // set once
    std::optional<PbrConfig> pbr;

    // As after power-on: nothing bound. Devices in `shared` are as they are, and the heads at this switch
    // have nothing bound either; the others are new.
    explicit SwitchModel(const SwitchConfig& config, const SharedDevices& shared = {});

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
// To bind or to unbind, as VirtualBridge::pid says.
struct PidBindingOperation {
    VppbId vppb;
};
using Operation = std::variant<BindOperation, UnbindOperation, SanitizeOperation, PidBindingOperation>;

// The device that an operation has to do with; none for the binding of a PID.
std::optional<std::size_t> device_index_of(const SwitchModel& model, const Operation& operation);

// The component whose background operation it is.
Component& component_of(SwitchModel& model, const Operation& operation);

// As after power-on: nothing bound, no events, nothing of what managers set. Links, and the devices with what
// is allocated in them, are as they are.
void reset(SwitchModel& model);
// The LDs of the device are as after power-on; while any is bound nothing changes.
void reset(Device& device);
// Without an operation: whoever had it has lost it.
void unbind_at_once(SwitchModel& model, VppbId id);

// Records how an operation ended, which must be the running one: a bind has bound or left the vPPB unbound,
// an unbind has unbound or left it bound.
void finish(SwitchModel& model, const Operation& operation, fmapi::ReturnCode code);

}  // namespace memtide::emul

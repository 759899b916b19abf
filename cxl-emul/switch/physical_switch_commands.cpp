#include <algorithm>
#include <utility>

#include "cxl-emul/switch/command_table.h"
#include "cxl-emul/switch/events.h"
#include "cxl-emul/switch/link_values.h"
#include "cxl-emul/switch/port_config_space.h"

// Physical switch command set (CXL 3.1, 7.6.7.1).
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

constexpr std::uint8_t kManagementPort = 0xff;  // requests come in beside the switch's ports
constexpr std::uint8_t kCxl20Mode = 1u << 1;

Outcome identify_switch(const SwitchContext& context, const fmapi::NoPayload&) {
    const SwitchModel& model = context.model;
    fmapi::IdentifySwitchDeviceResponse response;
    response.ingress_port = kManagementPort;
    response.physical_ports = static_cast<std::uint8_t>(model.ports.size());
    response.vcss = static_cast<std::uint8_t>(std::ranges::count(model.vcss, true, &Vcs::exists));
    for (const Port& port : model.ports) response.active_ports.set(port.config.id);
    for (const Vcs& vcs : model.vcss) {
        if (!vcs.exists) continue;
        response.active_vcss.set(vcs.config.id);
        response.total_vppbs = static_cast<std::uint16_t>(response.total_vppbs + vcs.vppbs.size());
        const auto bound = std::ranges::count_if(vcs.vppbs, [](const VirtualBridge& bridge) {
            return (bridge.pid ? bridge.pid->state : bridge.state) == VirtualBridge::State::kBound;
        });
        response.bound_vppbs = static_cast<std::uint16_t>(response.bound_vppbs + bound);
    }
    response.hdm_decoders = 1;
    return done(response);
}

// A port of its own for the host that has the device; an MLD's port is shared, so it shows no binding.
fmapi::PortConfigState config_state(const SwitchModel& model, const Port& port) {
    if (port.config.host) return fmapi::PortConfigState::kUpstream;
    if (port.device && !model.devices[*port.device].is_mld()) {
        const Device& device = model.devices[*port.device];
        const auto ld = ld_of_sld(device, port.config.head);
        const auto taken_by = ld ? device.lds[*ld].taken_by : std::nullopt;
        const auto state = taken_by ? model.bridge(*taken_by).state : VirtualBridge::State::kUnbound;
        if (state == VirtualBridge::State::kBinding) return fmapi::PortConfigState::kBindInProgress;
        if (state == VirtualBridge::State::kUnbinding) return fmapi::PortConfigState::kUnbindInProgress;
    }
    return fmapi::PortConfigState::kDownstream;
}

Outcome port_states(const SwitchContext& context, const fmapi::GetPhysicalPortStateRequest& request) {
    fmapi::GetPhysicalPortStateResponse response;
    for (const std::uint8_t id : request.ports) response.ports.push_back(port_state(context.model, id));
    return done(response);
}

// Whoever asked for the reset knows; the others want to.
void record_link_change(SwitchModel& model, std::size_t index) {
    if (reachable_device(model.ports[index]))
        record_port(model, index, fmapi::PhysicalSwitchEvent::kLinkStateChange,
                    fmapi::EventLog::kInformational);
}

// A device in reset has no memory: its port is only reset while no host has any of it.
Outcome port_control(const SwitchContext& context, const fmapi::PhysicalPortControlRequest& request) {
    SwitchModel& model = context.model;
    const auto index = model.find_port(request.port);
    if (!index || model.ports[*index].config.host || request.operation > fmapi::PortOperation::kResetPpb)
        return refuse(ReturnCode::kInvalidInput);
    Port& port = model.ports[*index];
    if (request.operation == fmapi::PortOperation::kDeassertPerst) {
        if (std::exchange(port.perst_asserted, false)) record_link_change(model, *index);
        return done();
    }
    if (port.device) {
        const Device& device = model.devices[*port.device];
        bool erasing = false;
        for (std::size_t ld = 0; ld < device.lds.size(); ++ld)
            erasing |= device.config.is_at_head(ld, port.config.head) && device.lds[ld].background.running;
        if (device.is_taken(port.config.head) || erasing) return refuse(ReturnCode::kBusy);
    }
    port.config_writes.clear();
    if (request.operation == fmapi::PortOperation::kAssertPerst && !std::exchange(port.perst_asserted, true))
        record_link_change(model, *index);
    return done();
}

Outcome port_config(const SwitchContext& context, const fmapi::PpbConfigRequest& request) {
    const auto index = context.model.find_port(request.port);
    if (!index) return refuse(ReturnCode::kInvalidInput);
    Port& port = context.model.ports[*index];
    if (!request.is_write()) return done(fmapi::PpbConfigResponse{read_port_config(port, request.offset())});
    write_port_config(port, request.offset(), request.write_data, request.byte_enable());
    return done(fmapi::PpbConfigResponse{0});
}

constexpr Row<SwitchContext> kPhysicalRows[] = {
    row<fmapi::IdentifySwitchDevice, SwitchContext, identify_switch>(),
    row<fmapi::GetPhysicalPortState, SwitchContext, port_states>(),
    row<fmapi::PhysicalPortControl, SwitchContext, port_control>(),
    row<fmapi::SendPpbConfigRequest, SwitchContext, port_config>(),
};

}  // namespace

fmapi::PhysicalPort port_state(const SwitchModel& model, std::uint8_t id) {
    fmapi::PhysicalPort state;
    state.port = id;
    const auto index = model.find_port(id);
    if (!index) {
        state.config_state = fmapi::PortConfigState::kInvalidPort;
        return state;
    }
    const Port& port = model.ports[*index];
    const auto device_index = reachable_device(port);
    const bool has_switch = port.config.cascade && port.device_link_up && port.device_plugged;
    const bool present = port.config.host || device_index || has_switch;
    const bool link_up = !port.perst_asserted && (port.config.host ? port.host_link_up : present);
    state.config_state = config_state(model, port);
    state.supported_cxl_modes = kCxl20Mode;
    state.max_link_width = kLanes;
    state.supported_link_speeds = kSpeedsUpTo32GTs;
    state.max_link_speed = k32GTs;
    state.ltssm_state = link_up ? kLtssmL0 : kLtssmDetect;
    if (link_up) {
        state.negotiated_link_width = kLanes;
        state.current_link_speed = k32GTs;
        state.device_mode = fmapi::ConnectedDeviceMode::kCxl20;
    }
    state.link_flags = static_cast<std::uint16_t>((present ? fmapi::kLinkPresent : 0) |
                                                  (port.perst_asserted ? fmapi::kLinkPerstAsserted : 0));
    // There is no code for a switch: like QEMU's, the port shows the PCIe device that its upstream port is.
    if (has_switch) state.device_type = fmapi::ConnectedDeviceType::kPcie;
    if (device_index) {
        const Device& device = model.devices[*device_index];
        state.device_type =
            device.is_mld() ? fmapi::ConnectedDeviceType::kType3Mld : fmapi::ConnectedDeviceType::kType3Sld;
        state.supported_lds = device.is_mld() ? static_cast<std::uint8_t>(device.lds.size()) : 0;
    }
    return state;
}

std::span<const Row<SwitchContext>> physical_switch_commands() { return kPhysicalRows; }

}  // namespace memtide::emul

#include <algorithm>

#include "common/log/log.h"
#include "cxl-emul/switch/command_table.h"

// Virtual switch command set (CXL 3.1, 7.6.7.2).
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

fmapi::Vppb state_of(const SwitchModel& model, const VirtualBridge& bridge) {
    fmapi::Vppb vppb;
    if (bridge.pid) {
        vppb.binding = bridge.pid->state == VirtualBridge::State::kBound ? fmapi::VppbBinding::kBoundPid
                                                                         : fmapi::VppbBinding::kInProgress;
        return vppb;
    }
    if (bridge.state == VirtualBridge::State::kUnbound) return vppb;
    const bool of_mld = model.device_of(bridge).is_mld();
    vppb.port = model.ports[bridge.port].config.id;
    if (of_mld) vppb.ld = static_cast<std::uint8_t>(bridge.ld);
    if (bridge.state != VirtualBridge::State::kBound)
        vppb.binding = fmapi::VppbBinding::kInProgress;
    else
        vppb.binding = of_mld ? fmapi::VppbBinding::kBoundLd : fmapi::VppbBinding::kBoundPort;
    return vppb;
}

fmapi::VirtualSwitch state_of(const SwitchModel& model, std::uint8_t id,
                              const fmapi::GetVirtualSwitchInfoRequest& request) {
    fmapi::VirtualSwitch block;
    block.vcs = id;
    block.first_vppb = request.first_vppb;
    block.vppb_limit = request.vppb_limit;
    const auto index = model.find_vcs(id);
    if (!index) {
        block.state = fmapi::VcsState::kInvalidVcs;
        return block;
    }
    const Vcs& vcs = model.vcss[*index];
    block.state = vcs.enabled ? fmapi::VcsState::kEnabled : fmapi::VcsState::kDisabled;
    block.upstream_port = vcs.config.upstream_port;
    block.total_vppbs = vcs.config.vppbs;
    for (std::size_t i = 0; i < block.listed(); ++i)
        block.vppbs.push_back(state_of(model, vcs.vppbs[request.first_vppb + i]));
    return block;
}

Outcome vcs_info(const SwitchContext& context, const fmapi::GetVirtualSwitchInfoRequest& request) {
    fmapi::GetVirtualSwitchInfoResponse response;
    for (const std::uint8_t id : request.vcss) response.vcss.push_back(state_of(context.model, id, request));
    return done(response);
}

// Which LD of the port's device a bind means: an SLD's by FFFFh, an MLD's by its number; of a multi-headed
// device, one of the head that is at the port.
std::optional<std::size_t> find_ld(const Device& device, std::uint8_t head, std::uint16_t ld) {
    if (!device.is_mld())
        return ld == kWholeDevice.value ? ld_of_sld(device, head) : std::optional<std::size_t>();
    if (ld >= device.lds.size() || !device.config.is_at_head(ld, head)) return std::nullopt;
    return ld;
}

Outcome bind(const SwitchContext& context, const fmapi::BindVppbRequest& request) {
    SwitchModel& model = context.model;
    const auto vppb = find_vppb(model, request.vcs, request.vppb);
    const auto port = model.find_port(request.port);
    if (!vppb || !port || !model.ports[*port].device) return refuse(ReturnCode::kInvalidInput);
    Device& device = model.devices[*model.ports[*port].device];
    const auto ld = find_ld(device, model.ports[*port].config.head, request.ld);
    if (!ld) return refuse(ReturnCode::kInvalidInput);
    if (model.background.running || device.lds[*ld].background.running) return refuse(ReturnCode::kBusy);
    if (model.ports[*port].perst_asserted || !reachable_device(model.ports[*port]))
        return refuse(ReturnCode::kRetryRequired);

    // One host at most reaches an LD: it is taken from here on, before anything happens at the host.
    VirtualBridge& bridge = model.bridge(*vppb);
    const bool is_empty = device.lds[*ld].size.value == 0 && !device.dynamic;
    if (!bridge.is_free() || !model.vcss[vppb->vcs].enabled || device.lds[*ld].taken_by || is_empty)
        return refuse(ReturnCode::kInvalidInput);
    bridge = {VirtualBridge::State::kBinding, *port, *ld, std::nullopt};
    device.lds[*ld].taken_by = *vppb;
    device.lds[*ld].pci = {};  // the host finds it as after a reset
    return start(model, fmapi::Opcode::kBindVppb, BindOperation{*vppb}, true);
}

Outcome unbind(const SwitchContext& context, const fmapi::UnbindVppbRequest& request) {
    SwitchModel& model = context.model;
    const auto vppb = find_vppb(model, request.vcs, request.vppb);
    if (!vppb || request.option > fmapi::UnbindOption::kSurpriseHotRemove)
        return refuse(ReturnCode::kInvalidInput);
    if (model.background.running) return refuse(ReturnCode::kBusy);
    VirtualBridge& bridge = model.bridge(*vppb);
    if (bridge.state != VirtualBridge::State::kBound) return refuse(ReturnCode::kInvalidInput);
    bridge.state = VirtualBridge::State::kUnbinding;
    return start(model, fmapi::Opcode::kUnbindVppb, UnbindOperation{*vppb, request.option}, false);
}

// The event is in the log only: hosts' root ports are QEMU's own.
Outcome generate_aer(const SwitchContext& context, const fmapi::GenerateAerEventRequest& request) {
    const auto vppb = find_vppb(context.model, request.vcs, request.vppb);
    if (!vppb || request.error_type == 0) return refuse(ReturnCode::kInvalidInput);
    log::info("AER event",
              {{"vcs", request.vcs}, {"vppb", request.vppb}, {"error_type", request.error_type}});
    return done();
}

constexpr Row<SwitchContext> kVirtualRows[] = {
    row<fmapi::GetVirtualSwitchInfo, SwitchContext, vcs_info>(),
    row<fmapi::BindVppb, SwitchContext, bind>(),
    row<fmapi::UnbindVppb, SwitchContext, unbind>(),
    row<fmapi::GenerateAerEvent, SwitchContext, generate_aer>(),
};

}  // namespace

std::optional<VppbId> find_vppb(const SwitchModel& model, std::uint8_t vcs, std::uint8_t vppb) {
    const auto index = model.find_vcs(vcs);
    if (!index || vppb >= model.vcss[*index].vppbs.size()) return std::nullopt;
    return VppbId{*index, vppb};
}

std::span<const Row<SwitchContext>> virtual_switch_commands() { return kVirtualRows; }

}  // namespace memtide::emul

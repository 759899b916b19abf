#include <algorithm>

#include "cxl-emul/switch/command_table.h"

// Port-based routing (CXL 3.1, 7.7.13): what a switch can route by PID, and vPPBs that are bound to a PID
// elsewhere in the fabric. A switch that the topology gives no `pbr` has none of these commands.
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

Outcome identify_pbr(const SwitchContext& context, const fmapi::NoPayload&) {
    const auto& pbr = context.model.pbr;
    if (!pbr) return refuse(ReturnCode::kUnsupported);
    return done(fmapi::IdentifyPbrSwitchResponse{.gae_vcss = pbr->gae_vcss,
                                                 .drts = pbr->drts,
                                                 .rgts = pbr->rgts,
                                                 .routing_modes = pbr->routing_modes});
}

Outcome pid_binding(const SwitchContext& context, const fmapi::GetPidBindingRequest& request) {
    if (!context.model.pbr) return refuse(ReturnCode::kUnsupported);
    const auto vppb = find_vppb(context.model, request.vcs, request.vppb);
    if (!vppb) return refuse(ReturnCode::kInvalidInput);
    const auto& bound = context.model.bridge(*vppb).pid;
    if (!bound || bound->state == VirtualBridge::State::kBinding) return done(fmapi::GetPidBindingResponse());
    return done(fmapi::GetPidBindingResponse{bound->pid, bound->cost});
}

bool is_in_use(const SwitchModel& model, std::uint16_t pid) {
    return std::ranges::any_of(model.vcss, [&](const Vcs& vcs) {
        return std::ranges::any_of(
            vcs.vppbs, [&](const VirtualBridge& bridge) { return bridge.pid && bridge.pid->pid == pid; });
    });
}

// One vPPB at most has a PID, as one at most has an LD. Invalid Input for a vPPB that has something, and for
// a PID that another has.
Outcome bind_pid(SwitchModel& model, VppbId id, const fmapi::ConfigurePidBindingRequest& request) {
    VirtualBridge& bridge = model.bridge(id);
    if (!model.vcss[id.vcs].enabled || request.pid > fmapi::kMaxPid || bridge.pid ||
        bridge.state != VirtualBridge::State::kUnbound || is_in_use(model, request.pid))
        return refuse(ReturnCode::kInvalidInput);
    bridge.pid = {VirtualBridge::State::kBinding, request.pid, request.cost};
    return start(model, fmapi::Opcode::kConfigurePidBinding, PidBindingOperation{id}, true);
}

Outcome unbind_pid(SwitchModel& model, VppbId id) {
    VirtualBridge& bridge = model.bridge(id);
    if (!bridge.pid) return refuse(ReturnCode::kInvalidInput);
    bridge.pid->state = VirtualBridge::State::kUnbinding;
    return start(model, fmapi::Opcode::kConfigurePidBinding, PidBindingOperation{id}, false);
}

Outcome configure_pid(const SwitchContext& context, const fmapi::ConfigurePidBindingRequest& request) {
    SwitchModel& model = context.model;
    if (!model.pbr) return refuse(ReturnCode::kUnsupported);
    const auto vppb = find_vppb(model, request.vcs, request.vppb);
    if (!vppb || request.operation > fmapi::PidBindingOperation::kUnbind)
        return refuse(ReturnCode::kInvalidInput);
    if (model.background.running) return refuse(ReturnCode::kBusy);
    if (request.operation == fmapi::PidBindingOperation::kUnbind) return unbind_pid(model, *vppb);
    return bind_pid(model, *vppb, request);
}

constexpr Row<SwitchContext> kPbrRows[] = {
    row<fmapi::IdentifyPbrSwitch, SwitchContext, identify_pbr>(),
    row<fmapi::GetPidBinding, SwitchContext, pid_binding>(),
    row<fmapi::ConfigurePidBinding, SwitchContext, configure_pid>(),
};

}  // namespace

std::span<const Row<SwitchContext>> pbr_commands() { return kPbrRows; }

}  // namespace memtide::emul

#include "fabric-manager/engine/next_step.h"

#include <fmt/format.h>

namespace memtide::fm {

namespace {

using enum ActionKind;

Action act(ActionKind kind) { return {kind, std::nullopt, {}}; }
Action fail_with(std::string code, std::string detail) {
    return {kFail, Reason{std::move(code), std::move(detail)}, {}};
}
Action await_switch(const Composition& c, const SwitchView& fabric) {
    std::string text = fmt::format("switch {} to answer", c.where.switch_id.value);
    if (!fabric.trouble.empty()) text += ": " + fabric.trouble;
    return {kAwaitSwitch, std::nullopt, std::move(text)};
}
Action await_device(const Composition& c) {
    return {kAwaitSwitch, std::nullopt,
            fmt::format("device {} to be back on port {} of {}", c.memory.device.value, c.port,
                        c.where.switch_id.value)};
}
Action await_background(const Composition& c) {
    return {kAwaitBackground, std::nullopt,
            fmt::format("switch {} to end what it does to vPPB {} of VCS {}", c.where.switch_id.value,
                        c.where.vppb, c.where.vcs)};
}
// What the agent said last, to put behind a "waiting for".
std::string agent_says(const AgentView& agent) {
    if (!agent.reported) return " (it has not reported yet)";
    if (!agent.composition) return "";
    if (agent.composition->error)
        return fmt::format(" (it reports: {}: {})", agent.composition->error->code,
                           agent.composition->error->detail);
    if (agent.composition->state == ObservedState::kOnline)
        return fmt::format(" (it reports: online, with {} on node {})",
                           format_bytes(agent.composition->online_bytes),
                           agent.composition->node ? std::to_string(*agent.composition->node) : "-");
    return fmt::format(" (it reports: {})", to_string(agent.composition->state));
}

// Blocks that the host's memory block size does not fill stay out, so that less than all may be online.
bool agent_has_it_online(const Composition& c, const AgentView& agent) {
    if (!agent.composition || agent.composition->state != ObservedState::kOnline) return false;
    const ObservedComposition& seen = *agent.composition;
    return seen.serial == c.serial && seen.node && seen.online_bytes.value != 0 &&
           seen.online_bytes <= c.size;
}

// Safe to unbind: the agent has seen that it shall let go, and says that it has.
bool agent_let_go(const Composition& c, const AgentView& agent) {
    if (!agent.composition || agent.revision_seen < c.offline_revision) return false;
    return agent.composition->state == ObservedState::kOffline ||
           agent.composition->state == ObservedState::kAbsent;
}

Action failing(const Composition& c, const SwitchView& fabric) {
    // The reason is journaled; what is left is to undo the carve.
    const bool carved = c.carve && c.carve->done;
    if (carved && !fabric.known) return await_switch(c, fabric);
    if (carved && fabric.device_present && fabric.vppb != VppbView::kOurs) return act(kUndoAllocate);
    return {kFail, c.reason, {}};
}

Action when_pending(const Composition& c, const SwitchView& fabric) {
    if (c.reason) return failing(c, fabric);
    if (c.release_requested) return act(kRelease);
    if (!fabric.known) return await_switch(c, fabric);
    if (!fabric.device_present) return await_device(c);
    if (fabric.vppb == VppbView::kUnknown)
        return fail_with("vppb-gone", fmt::format("switch {} has no vPPB {} in VCS {} any more",
                                                  c.where.switch_id.value, c.where.vppb, c.where.vcs));
    if (fabric.vppb == VppbView::kBusy) return await_background(c);
    if (fabric.vppb == VppbView::kOther || fabric.vppb == VppbView::kOurs || fabric.ld_elsewhere)
        return fail_with("taken", "its vPPB or its LD was bound by someone else before it could be");
    if (c.carve && !c.carve->done) return act(kAllocate);
    if (fabric.ld_size != c.size)
        return fail_with(
            "allocation-changed",
            fmt::format("its LD has {} instead of {}: someone else changed the "
                        "allocations of {}",
                        format_bytes(fabric.ld_size), format_bytes(c.size), c.memory.device.value));
    return act(fabric.ld_clean ? kBind : kEraseBeforeBind);
}

Action when_binding(const Composition& c, const SwitchView& fabric) {
    if (!fabric.known) return await_switch(c, fabric);
    if (fabric.vppb == VppbView::kBusy) return await_background(c);
    if (fabric.vppb == VppbView::kOurs) {
        // From here a host sees it, so that every way out goes through the agent.
        if (c.release_requested || c.reason) return act(kStartDrain);
        return act(kEnterOnlining);
    }
    if (c.reason) return failing(c, fabric);
    if (c.release_requested) return act(kRelease);
    if (fabric.vppb != VppbView::kFree || fabric.ld_elsewhere)
        return fail_with("taken", "its vPPB or its LD was bound by someone else while it was being bound");
    if (!fabric.device_present) return await_device(c);
    return act(fabric.ld_clean ? kBind : kEraseBeforeBind);
}

// Whether the memory is gone from under the host.
bool has_vanished(const SwitchView& fabric) {
    if (!fabric.known) return false;
    return !fabric.device_present || (fabric.vppb != VppbView::kOurs && fabric.vppb != VppbView::kBusy);
}

// One reading that misses the memory proves little: a link may be retraining.
Action vanish(const Composition& c, const SwitchView& fabric) {
    if (!fabric.gone_for_long)
        return {kAwaitSwitch, std::nullopt,
                fmt::format("switch {} to show again whether the memory is gone", c.where.switch_id.value)};
    const std::string_view what = fabric.device_present
                                      ? "the switch shows its vPPB unbound, and nobody here asked for that"
                                      : "its port shows no device any more";
    return fail_with("device-vanished",
                     fmt::format("{} (device {}, port {} of {}); the memory is erased before it "
                                 "is used again",
                                 what, c.memory.device.value, c.port, c.where.switch_id.value));
}

Action when_onlining(const Composition& c, const SwitchView& fabric, const AgentView& agent) {
    if (has_vanished(fabric)) return vanish(c, fabric);
    if (c.release_requested) return act(kStartDrain);
    if (agent_has_it_online(c, agent)) return act(kBecomeOnline);
    return {kAwaitAgentOnline, std::nullopt,
            fmt::format("the agent of {} to online the memory{}", c.host.value, agent_says(agent))};
}

Action when_online(const Composition& c, const SwitchView& fabric, const AgentView& agent) {
    if (has_vanished(fabric)) return vanish(c, fabric);
    if (c.release_requested) return act(kStartDrain);
    if (!agent.reported) return act(kNothing);
    const bool rebooted = agent.boot_id != c.boot_id;
    if (rebooted || (agent.composition && !agent_has_it_online(c, agent))) return act(kReenterOnlining);
    return act(kNothing);
}

Action when_draining(const Composition& c, const SwitchView& fabric, const AgentView& agent) {
    if (fabric.known && fabric.vppb != VppbView::kOurs && fabric.vppb != VppbView::kBusy)
        return act(kEnterErasing);
    if (c.forced || agent_let_go(c, agent)) return fabric.known ? act(kUnbind) : await_switch(c, fabric);
    return {kAwaitAgentOffline, std::nullopt,
            fmt::format("the agent of {} to take the memory offline{}", c.host.value, agent_says(agent))};
}

Action when_unbinding(const Composition& c, const SwitchView& fabric) {
    if (!fabric.known) return await_switch(c, fabric);
    if (fabric.vppb == VppbView::kBusy) return await_background(c);
    return act(fabric.vppb == VppbView::kOurs ? kUnbind : kEnterErasing);
}

Action when_erasing(const Composition& c, const SwitchView& fabric) {
    if (!fabric.known) return await_switch(c, fabric);
    if (!fabric.device_present && !fabric.gone_for_long) return await_device(c);
    if (!fabric.device_present)
        return fail_with(
            "device-vanished",
            fmt::format("device {} left before its memory was erased; it is erased before it is used "
                        "again",
                        c.memory.device.value));
    if (fabric.vppb == VppbView::kOurs || fabric.ld_elsewhere)
        return fail_with("taken", "someone else bound its LD before it could be erased");
    return act(kErase);
}

}  // namespace

bool is_missing(const Composition& c, const SwitchView& fabric) {
    const bool with_host = c.state == CompositionState::kOnlining || c.state == CompositionState::kOnline;
    if (with_host) return has_vanished(fabric);
    return c.state == CompositionState::kErasing && fabric.known && !fabric.device_present;
}

Action next_step(const Composition& c, const SwitchView& fabric, const AgentView& agent) {
    switch (c.state) {
        case CompositionState::kPending:
            return when_pending(c, fabric);
        case CompositionState::kBinding:
            return when_binding(c, fabric);
        case CompositionState::kOnlining:
            return when_onlining(c, fabric, agent);
        case CompositionState::kOnline:
            return when_online(c, fabric, agent);
        case CompositionState::kDraining:
            return when_draining(c, fabric, agent);
        case CompositionState::kUnbinding:
            return when_unbinding(c, fabric);
        case CompositionState::kErasing:
            return when_erasing(c, fabric);
        case CompositionState::kReleased:
        case CompositionState::kFailed:
            return act(kNothing);
    }
    return act(kNothing);
}

}  // namespace memtide::fm

#include "fabric-manager/engine/next_step.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::fm {

namespace {

using enum ActionKind;

Action act(ActionKind kind) { return {kind, std::nullopt, {}}; }
Action fail_with(std::string code, std::string detail) {
    return {kFail, Reason{std::move(code), std::move(detail)}, {}};
}
Action await_switch(const Part& p, const SwitchView& fabric) {
    std::string text = fmt::format("switch {} to answer", p.where.switch_id.value);
    if (!fabric.trouble.empty()) text += ": " + fabric.trouble;
    return {kAwaitSwitch, std::nullopt, std::move(text)};
}
Action await_device(const Part& p) {
    return {kAwaitSwitch, std::nullopt,
            fmt::format("device {} to be back on port {} of {}", p.memory.device.value, p.port,
                        p.where.switch_id.value)};
}
// Waits for a device that may come back; one that is elsewhere, where the part could not follow it, will not.
Action miss_device(const Part& p, const SwitchView& fabric) {
    if (fabric.moved_to.empty()) return await_device(p);
    return fail_with(
        "device-moved",
        fmt::format("device {} was moved from port {} of {} to {}, where its host does not get it",
                    p.memory.device.value, p.port, p.where.switch_id.value, fabric.moved_to));
}
Action await_background(const Part& p) {
    return {kAwaitBackground, std::nullopt,
            fmt::format("switch {} to end what it does to vPPB {} of VCS {}", p.where.switch_id.value,
                        p.where.vppb, p.where.vcs)};
}
// What the agent said last, to put behind a "waiting for".
std::string agent_says(const AgentView& agent) {
    if (!agent.reported) return " (it has not reported yet)";
    if (!agent.region) return "";
    if (agent.region->error)
        return fmt::format(" (it reports: {}: {})", agent.region->error->code, agent.region->error->detail);
    if (agent.region->state == ObservedState::kOnline)
        return fmt::format(" (it reports: online, with {} on node {})",
                           format_bytes(agent.region->online_bytes),
                           agent.region->node ? std::to_string(*agent.region->node) : "-");
    return fmt::format(" (it reports: {})", to_string(agent.region->state));
}

// Blocks that the host's memory block size does not fill stay out, so that less than all may be online.
// Of dynamic capacity somebody else may have added more to the LD: that is no reason to take it away.
bool agent_has_it_online(const Part& p, const SwitchView& fabric, const AgentView& agent) {
    if (!agent.region || agent.region->state != ObservedState::kOnline) return false;
    const ObservedRegion& seen = *agent.region;
    const bool ours = std::ranges::find(seen.serials, p.serial) != seen.serials.end();
    if (!ours || !seen.node || seen.online_bytes.value == 0) return false;
    return fabric.dynamic || seen.online_bytes <= agent.region_size;
}

// Only what no host has used yet can be told from what a host has written since.
bool agent_found_it_not_erased(const Part& p, const AgentView& agent) {
    if (!agent.region || !p.boot_id.empty() || p.reason) return false;
    return std::ranges::find(agent.region->not_erased, p.serial) != agent.region->not_erased.end();
}

// Safe to unbind: the agent has seen that it shall let go, and says that it has.
bool agent_let_go(const Part& p, const AgentView& agent) {
    if (!agent.region || agent.revision_seen < p.offline_revision) return false;
    return agent.region->state == ObservedState::kOffline || agent.region->state == ObservedState::kAbsent;
}

// What takes its place is chosen in the same step, among what the switch shows.
Action not_erased(const Part& p, const SwitchView& fabric) {
    return fabric.known ? act(kNotErased) : await_switch(p, fabric);
}

Action failing(const Part& p, const SwitchView& fabric) {
    // The reason is journaled; what is left is to undo the carve.
    const bool carved = p.carve && p.carve->done;
    if (carved && !fabric.known) return await_switch(p, fabric);
    if (carved && fabric.device_present && fabric.vppb != VppbView::kOurs) return act(kUndoAllocate);
    return {kFail, p.reason, {}};
}

Action when_pending(const Part& p, const SwitchView& fabric) {
    if (p.reason) return failing(p, fabric);
    if (p.release_requested) return act(kRelease);
    if (!fabric.known) return await_switch(p, fabric);
    if (!fabric.device_present) return miss_device(p, fabric);
    if (fabric.vppb == VppbView::kUnknown)
        return fail_with("vppb-gone", fmt::format("switch {} has no vPPB {} in VCS {} any more",
                                                  p.where.switch_id.value, p.where.vppb, p.where.vcs));
    if (fabric.vppb == VppbView::kBusy) return await_background(p);
    if (fabric.vppb == VppbView::kOther || fabric.vppb == VppbView::kOurs || fabric.ld_elsewhere)
        return fail_with("taken", "its vPPB or its LD was bound by someone else before it could be");
    if (p.carve && !p.carve->done) return act(kAllocate);
    if (fabric.ld_size != p.size)
        return fail_with(
            "allocation-changed",
            fmt::format("its LD has {} instead of {}: someone else changed the "
                        "allocations of {}",
                        format_bytes(fabric.ld_size), format_bytes(p.size), p.memory.device.value));
    return act(fabric.ld_clean ? kBind : kEraseBeforeBind);
}

Action when_binding(const Part& p, const SwitchView& fabric) {
    if (!fabric.known) return await_switch(p, fabric);
    if (fabric.vppb == VppbView::kBusy) return await_background(p);
    if (fabric.vppb == VppbView::kOurs) {
        // From here a host sees it, so that every way out goes through the agent.
        if (p.release_requested || p.reason) return act(kStartDrain);
        return act(kEnterOnlining);
    }
    if (p.reason) return failing(p, fabric);
    if (p.release_requested) return act(kRelease);
    if (fabric.vppb != VppbView::kFree || fabric.ld_elsewhere)
        return fail_with("taken", "its vPPB or its LD was bound by someone else while it was being bound");
    if (!fabric.device_present) return miss_device(p, fabric);
    return act(fabric.ld_clean ? kBind : kEraseBeforeBind);
}

// What its host had accepted of a dynamic capacity device, and the device does not list any more.
bool lost_extents(const Part& p, const SwitchView& fabric) {
    return fabric.dynamic && !fabric.offered && fabric.ld_size < p.size;
}

// Whether the memory is gone from under the host.
bool has_vanished(const Part& p, const SwitchView& fabric) {
    if (!fabric.known) return false;
    if (!fabric.device_present) return true;
    if (fabric.vppb != VppbView::kOurs && fabric.vppb != VppbView::kBusy) return true;
    return p.state == CompositionState::kOnline && lost_extents(p, fabric);
}

// One reading that misses the memory proves little: a link may be retraining.
Action vanish(const Part& p, const SwitchView& fabric) {
    if (!fabric.moved_to.empty() && !fabric.device_present)
        return fail_with(
            "device-moved",
            fmt::format("device {} was moved from port {} of {} to {}; the memory is erased before "
                        "it is used again",
                        p.memory.device.value, p.port, p.where.switch_id.value, fabric.moved_to));
    if (!fabric.gone_for_long)
        return {kAwaitSwitch, std::nullopt,
                fmt::format("switch {} to show again whether the memory is gone", p.where.switch_id.value)};
    std::string_view what = "its port shows no device any more";
    if (fabric.device_present && fabric.vppb == VppbView::kOurs)
        what = "its device lists it no longer as what the host has, and nobody here asked for that";
    else if (fabric.device_present)
        what = "the switch shows its vPPB unbound, and nobody here asked for that";
    return fail_with("device-vanished",
                     fmt::format("{} (device {}, port {} of {}); the memory is erased before it "
                                 "is used again",
                                 what, p.memory.device.value, p.port, p.where.switch_id.value));
}

// What it accepted a part of is its host's to explain; the rest cannot be offered under the same tags.
Action lacks_extents(const CompositionView& c, const Part& p, const SwitchView& fabric) {
    if (fabric.ld_size.value == 0) return act(kOffer);
    return {kAwaitAgentOnline, std::nullopt,
            fmt::format("host {} to have {} of dynamic capacity; its device says that it has accepted {}",
                        c.host.value, format_bytes(p.size), format_bytes(fabric.ld_size))};
}

Action when_onlining(const CompositionView& c, const Part& p, const SwitchView& fabric,
                     const AgentView& agent) {
    if (agent_found_it_not_erased(p, agent)) return not_erased(p, fabric);
    if (has_vanished(p, fabric)) return vanish(p, fabric);
    if (p.release_requested) return act(kStartDrain);
    if (agent_has_it_online(p, fabric, agent)) return act(fabric.offered ? kSeeAccepted : kBecomeOnline);
    if (fabric.known && lost_extents(p, fabric)) return lacks_extents(c, p, fabric);
    if (c.expendable && agent.region && agent.region->state == ObservedState::kFailed) {
        const auto& error = agent.region->error;
        return {kOnlineRefused,
                Reason{"online-refused", fmt::format("the agent of {} could not online it{}", c.host.value,
                                                     error ? ": " + error->detail : std::string())},
                {}};
    }
    if (fabric.known && fabric.offered)
        return {kAwaitAgentOnline, std::nullopt,
                fmt::format("host {} to accept the dynamic capacity that device {} offers it{}", c.host.value,
                            p.memory.device.value, agent_says(agent))};
    if (!agent.asked_online)
        return {kAwaitAgentOnline, std::nullopt, "the other parts of its interleaved region to be bound"};
    return {kAwaitAgentOnline, std::nullopt,
            fmt::format("the agent of {} to online the memory{}", c.host.value, agent_says(agent))};
}

Action when_online(const Part& p, const SwitchView& fabric, const AgentView& agent) {
    if (has_vanished(p, fabric)) return vanish(p, fabric);
    if (p.release_requested) return act(kStartDrain);
    if (!agent.reported) return act(kNothing);
    const bool rebooted = agent.boot_id != p.boot_id;
    if (rebooted || (agent.region && !agent_has_it_online(p, fabric, agent))) return act(kReenterOnlining);
    return act(kNothing);
}

Action when_draining(const HostId& host, const Part& p, const SwitchView& fabric, const AgentView& agent) {
    if (agent_found_it_not_erased(p, agent)) return not_erased(p, fabric);
    if (fabric.known && fabric.vppb != VppbView::kOurs && fabric.vppb != VppbView::kBusy)
        return act(kEnterErasing);
    if (p.forced || agent_let_go(p, agent)) return fabric.known ? act(kUnbind) : await_switch(p, fabric);
    return {kAwaitAgentOffline, std::nullopt,
            fmt::format("the agent of {} to take the memory offline{}", host.value, agent_says(agent))};
}

Action when_unbinding(const Part& p, const SwitchView& fabric) {
    if (!fabric.known) return await_switch(p, fabric);
    if (fabric.vppb == VppbView::kBusy) return await_background(p);
    return act(fabric.vppb == VppbView::kOurs ? kUnbind : kEnterErasing);
}

Action when_erasing(const Part& p, const SwitchView& fabric) {
    if (!fabric.known) return await_switch(p, fabric);
    if (!fabric.device_present && !fabric.moved_to.empty())
        return fail_with("device-moved",
                         fmt::format("device {} was moved to {} before its memory was erased; it is erased "
                                     "before it is used again",
                                     p.memory.device.value, fabric.moved_to));
    if (!fabric.device_present && !fabric.gone_for_long) return await_device(p);
    if (!fabric.device_present)
        return fail_with(
            "device-vanished",
            fmt::format("device {} left before its memory was erased; it is erased before it is used "
                        "again",
                        p.memory.device.value));
    if (fabric.vppb == VppbView::kOurs || fabric.ld_elsewhere)
        return fail_with("taken", "someone else bound its LD before it could be erased");
    return act(kErase);
}

}  // namespace

bool is_missing(const Part& p, const SwitchView& fabric) {
    const bool with_host = p.state == CompositionState::kOnlining || p.state == CompositionState::kOnline;
    if (with_host) return has_vanished(p, fabric);
    return p.state == CompositionState::kErasing && fabric.known && !fabric.device_present;
}

Action next_step(const CompositionView& c, const Part& p, const SwitchView& fabric, const AgentView& agent) {
    switch (p.state) {
        case CompositionState::kPending:
            return when_pending(p, fabric);
        case CompositionState::kBinding:
            return when_binding(p, fabric);
        case CompositionState::kOnlining:
            return when_onlining(c, p, fabric, agent);
        case CompositionState::kOnline:
            return when_online(p, fabric, agent);
        case CompositionState::kDraining:
            return when_draining(c.host, p, fabric, agent);
        case CompositionState::kUnbinding:
            return when_unbinding(p, fabric);
        case CompositionState::kErasing:
            return when_erasing(p, fabric);
        case CompositionState::kResizing:
        case CompositionState::kDegraded:
        case CompositionState::kReleased:
        case CompositionState::kFailed:
            return act(kNothing);
    }
    return act(kNothing);
}

}  // namespace memtide::fm

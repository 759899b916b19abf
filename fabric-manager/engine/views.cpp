// What the job of a part looks at: its composition, the switch's side of it, and the agent's.
#include <algorithm>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/desired.h"

namespace memtide::fm {

CompositionView Core::composition_view(const PartRef& ref) {
    const Composition& c = ref.entry->c;
    const bool comes =
        c.exchange && std::ranges::find(c.exchange->coming, ref.number) != c.exchange->coming.end();
    return {c.host, comes};
}

SwitchView Core::switch_view(const PartRef& ref) const {
    const Part& part = ref.part();
    SwitchView view;
    const Switch* owner = inventory_.find_switch(part.where.switch_id);
    const SwitchState& state = *switches_.at(part.where.switch_id);
    view.dynamic = is_dynamic(part.memory.device);
    if (owner == nullptr || !owner->up || !owner->inventoried || state.doubtful) {
        if (owner != nullptr) view.trouble = owner->error;
        return view;
    }
    view.known = true;
    // A device that cannot be read may well be the part's own, and its host may be using it.
    if (const auto unreadable = state.unusable.find(part.port);
        unreadable != state.unusable.end() && unreadable->second.code == "unreadable" &&
        inventory_.device_at(owner->id, part.port) == nullptr && moved_to(part).empty()) {
        view.known = false;
        view.trouble = unreadable->second.why;
        return view;
    }
    // An SLD is bound as a whole, also where it is one of several LDs of a multi-headed device.
    const Device* device = inventory_.device(part.memory.device);
    const bool is_sld = device != nullptr && device->kind == DeviceKind::kSld;
    view.device_present = inventory_.shows(owner->id, part.port, part.memory);
    if (const LogicalDevice* ld = inventory_.ld(part.memory)) {
        view.ld_size = ld->size;
        // What a dynamic capacity device offers has been erased by the device.
        view.ld_clean = (ld->clean || ld->dynamic) && !ld->quarantined;
        view.offered = ld->offered;
        view.ld_elsewhere = ld->bound_at && *ld->bound_at != part.where;
    }
    if (!view.device_present) view.moved_to = moved_to(part);
    const std::optional<SteadyTime>& missed = ref.job().missed;
    view.gone_for_long = missed && state.read_began >= *missed + config_.timing.gone_after;
    const Vppb* vppb = inventory_.vppb(part.where);
    if (vppb == nullptr) return view;
    switch (vppb->status) {
        case BindingStatus::kUnbound:
            view.vppb = VppbView::kFree;
            break;
        case BindingStatus::kInProgress:
            view.vppb = VppbView::kBusy;
            break;
        case BindingStatus::kBoundPort:
            view.vppb = vppb->port == part.port && (part.memory.ld == kWholeDevice || is_sld)
                            ? VppbView::kOurs
                            : VppbView::kOther;
            break;
        case BindingStatus::kBoundLd:
            view.vppb =
                vppb->port == part.port && vppb->ld == part.memory.ld ? VppbView::kOurs : VppbView::kOther;
            break;
    }
    return view;
}

AgentView Core::agent_view(const PartRef& ref) const {
    const Composition& c = ref.entry->c;
    const AgentState& agent = *agents_.at(c.host);
    AgentView view{agent.reported, agent.boot_id, agent.revision_seen, std::nullopt, false, {}};
    const RegionId id{c.id, ref.part().region};
    const auto own = agent.regions.find(id);
    if (own != agent.regions.end()) view.region = own->second;
    if (const auto told = desired_region(c, id.number)) {
        view.asked_online = told->online;
        view.region_size = told->size;
    }
    return view;
}

}  // namespace memtide::fm

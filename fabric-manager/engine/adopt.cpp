// What is found bound and no composition explains: as compositions of their own. What a lost part left bound
// is given back to the pool when its device returns.
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

// --- Lost parts ---

// A part that ends because its memory is gone may have left it bound: its switch shows that when it is back.
void Core::note_lost(const Composition& c, const Part& part) {
    const bool lost = part.state == CompositionState::kFailed && part.reason &&
                      part.reason->code == "device-vanished" && part.serial.value != 0;
    if (lost) lost_.insert_or_assign(part.serial, LostPart{c.id, c.host, c.tenant, part.where});
}

const Core::LostPart* Core::lost_part(const LogicalDevice& ld, const HostId& host,
                                      const VppbAddress& where) const {
    const auto found = lost_.find(ld.serial);
    const bool same = found != lost_.end() && found->second.host == host && found->second.where == where;
    return same ? &found->second : nullptr;
}

// Memory that is seen elsewhere, or free, or given to another composition, says that nothing was left.
void Core::forget_found(const SwitchId& id) {
    if (lost_.empty()) return;
    std::map<SerialNumber, const LogicalDevice*> seen;
    for (const Device* device : inventory_.devices_behind(id))
        for (const LogicalDevice& ld : device->lds) seen.emplace(ld.serial, &ld);
    std::erase_if(lost_, [&](const auto& one) {
        const auto& [serial, lost] = one;
        if (lost.where.switch_id != id) return false;
        const auto found = seen.find(serial);
        return found != seen.end() && (found->second->owner || found->second->bound_at != lost.where);
    });
}

// --- Adopting ---

// A binding that no composition explains, as a composition.
std::optional<Core::Adoption> Core::unexplained(const SwitchId& id, const Vcs& vcs, const Vppb& vppb) const {
    const bool bound = vppb.status == BindingStatus::kBoundLd || vppb.status == BindingStatus::kBoundPort;
    if (!bound || vppb.owner || !vcs.host) return std::nullopt;
    const Device* device = inventory_.device_at(id, vppb.port);
    const LogicalDevice* ld = inventory_.bound_to(id, vppb);
    if (ld == nullptr || ld->owner) return std::nullopt;
    Adoption result;
    Composition& c = result.c;
    c.host = *vcs.host;
    c.size = ld->size;
    c.labels["adopted"] = "true";
    c.adopted = true;
    Part part;
    part.size = ld->size;
    part.state = CompositionState::kOnlining;
    part.memory = {device->id, ld->id};
    part.serial = ld->serial;
    part.port = vppb.port;
    part.where = {id, vcs.id, vppb.id};
    const LostPart* lost = lost_part(*ld, c.host, part.where);
    // An LD of a dynamic capacity device may be bound before it has any memory: that is somebody else's
    // affair.
    if (ld->size.value == 0 && lost == nullptr) return std::nullopt;
    result.detail = "found bound on the switch, and no composition explains it";
    if (lost != nullptr) {
        c.tenant = lost->tenant;
        c.release_requested = true;
        part.release_requested = true;
        result.detail = fmt::format(
            "composition {} lost it and has ended with it or goes on without it; it is "
            "back, still bound, and is given back to the pool",
            lost->composition.value);
    }
    c.parts.push_back(std::move(part));
    c.next_part = 1;
    return result;
}

Async<> Core::adopt(SwitchId id) {
    std::vector<Adoption> found;
    for (const Vcs& vcs : inventory_.find_switch(id)->vcss)
        for (const Vppb& vppb : vcs.vppbs)
            if (std::optional<Adoption> one = unexplained(id, vcs, vppb)) found.push_back(*std::move(one));
    forget_found(id);
    for (Adoption& one : found) {
        Composition& c = one.c;
        c.id = new_id();
        c.sequence = next_sequence_++;
        c.created = now();
        if (c.release_requested)
            begin_drain(c, c.parts.front());
        else
            begin_step(c, 0, "online", now());
        auto entry = std::make_shared<Entry>(executor_, std::move(c));
        if (!inventory_.claim(entry->c)) continue;  // taken by a request that came in meanwhile
        Change change = [this, detail = std::move(one.detail)](Draft& draft) {
            draft.code = "adopted";
            draft.detail = detail;
            Event event = event_about(draft, draft.c.parts.front(), "composition.adopted");
            event.detail = detail;
            draft.events.push_back(std::move(event));
            return true;
        };
        const Result<> durable = co_await journal(entry, std::move(change));
        if (!durable) {
            inventory_.release(entry->c.id);
            log::warning("could not adopt a binding; tried again at the next reading",
                         {{"error", durable.error()}});
            continue;
        }
        meters_->adopted.add();
        kick(entry);
    }
}

}  // namespace memtide::fm

// Devices that turn up at another port, of the same switch or of another one.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/read_switch.h"

namespace memtide::fm {

namespace {

Event device_event(std::string type, const SwitchId& id, const DeviceId& device, std::string detail) {
    Event event;
    event.type = std::move(type);
    event.switch_id = id;
    event.device = device;
    event.detail = std::move(detail);
    return event;
}

// Nobody reaches the memory through the part's vPPB, and nobody did since it was erased for the part.
bool is_unbound(CompositionState state) {
    return state == CompositionState::kPending || state == CompositionState::kBinding ||
           state == CompositionState::kErasing;
}

}  // namespace

// Takes the devices off their ports that the reading does not show there any more. A port whose device cannot
// be read keeps what it had.
void Core::take_away(const SwitchId& id, const FabricReading& reading) {
    std::map<std::uint8_t, DeviceId> shown;
    std::set<DeviceId> anywhere;
    std::set<std::uint8_t> unreadable;
    for (const FabricReading::Unreadable& one : reading.unreadable) unreadable.insert(one.port);
    for (const DeviceReading& one : reading.devices) {
        const DeviceId name = device_id(one.kind, one.serial, id, one.port);
        shown[one.port] = name;
        anywhere.insert(name);
    }
    std::erase_if(claimants_, [&](const auto& claim) {
        return claim.second.switch_id == id && !anywhere.contains(claim.first);
    });
    for (const std::uint8_t port : inventory_.ports_with_devices(id)) {
        const Device& device = *inventory_.device_at(id, port);
        const auto at = shown.find(port);
        const bool there = at == shown.end() ? unreadable.contains(port) : at->second == device.id;
        if (there) continue;
        const DeviceId name = device.id;
        const bool one_head = !device.is_multi_headed();
        inventory_.device_gone(id, port);
        if (const auto claimant = claimants_.find(name); claimant != claimants_.end())
            doubt(claimant->second.switch_id);              // it may be there by now
        if (one_head && anywhere.contains(name)) continue;  // told when it is found
        tell_change({.device = name}, device_event("device.removed", id, name,
                                                   fmt::format("port {} shows no device any more", port)));
    }
}

// Whether the device was last seen behind another switch that has not been read since: it has to be asked
// whether the device is still there, before this one's word counts. A switch that does not answer keeps what
// it had, since hosts may still reach the device through it.
bool Core::may_have_moved(const SwitchId& id, const DeviceReading& seen) {
    const DeviceId name = device_id(seen.kind, seen.serial, id, seen.port);
    const Device* known = inventory_.device(name);
    // Where several heads are at once says nothing of a move.
    const bool one_head = !seen.multi_headed && (known == nullptr || !known->is_multi_headed());
    if (known == nullptr || !known->present || !one_head) {
        claimants_.erase(name);
        return false;
    }
    if (known->switch_id == id) return false;
    const SteadyTime current = std::chrono::steady_clock::now();
    const Claimant& claimant = claimants_.try_emplace(name, Claimant{id, current}).first->second;
    const SwitchState& there = *switches_.at(known->switch_id);
    if (claimant.switch_id != id || !inventory_.find_switch(known->switch_id)->up ||
        there.read_began >= claimant.since)
        return false;  // a second device with its number, until the other switch says otherwise
    doubt(known->switch_id);
    return true;
}

void Core::note_move(const DeviceId& name, const Place& from) {
    const Device& device = *inventory_.device(name);
    moves_.insert_or_assign(name, from);
    tell_change({.device = name},
                device_event("device.moved", device.switch_id, name,
                             fmt::format("it was on port {} of {} and is on port {} of {} now", from.port,
                                         from.switch_id.value, device.port, device.switch_id.value)));
}

// Where the part's device is when it is not where the part has it; empty when it is, or is nowhere, or the
// part may still be led there.
std::string Core::moved_to(const Part& part) const {
    const Device* device = inventory_.device(part.memory.device);
    if (device == nullptr || !device->present || moves_.contains(device->id)) return {};
    if (device->is_multi_headed()) return {};
    if (device->switch_id == part.where.switch_id && device->port == part.port) return {};
    return fmt::format("port {} of {}", device->port, device->switch_id.value);
}

// Leads the parts that wait for devices which this switch now shows to where they are.
Async<> Core::follow_moves(SwitchId id) {
    std::vector<DeviceId> moved;
    for (const auto& [name, from] : moves_)
        if (inventory_.device(name)->switch_id == id) moved.push_back(name);
    for (const DeviceId& name : moved) {
        const SwitchId from = moves_.at(name).switch_id;
        std::vector<PartRef> waiting;
        for (const PartId& part : switches_.at(from)->active) {
            const EntryPtr entry = find(part.composition);
            const Part* own = entry ? entry->c.part(part.number) : nullptr;
            if (own != nullptr && own->memory.device == name && is_unbound(own->state))
                waiting.push_back({entry, part.number});
        }
        for (const PartRef& ref : waiting) {
            co_await follow(ref);
            if (stopping_) co_return;
        }
        moves_.erase(name);
        kick(std::set<PartId>(switches_.at(from)->active));
    }
}

Async<> Core::follow(PartRef ref) {
    // A job under way acts on where the part was; it ends as soon as it finds the device missing there.
    constexpr int kPatience = 50;
    for (int i = 0; i < kPatience && ref.job().running && !stopping_; ++i) {
        ref.job().kick.notify_all();  // when it pauses before a retry
        co_await pause_us(config_.timing.retry_min);
    }
    if (stopping_ || ref.job().running) co_return;
    const PartId id{ref.entry->c.id, ref.number};
    bool claimed = false;
    Change change = [&](Draft& draft) {
        Part& part = draft.part();
        if (!is_unbound(part.state) || !lead_to(part, draft.c.host)) return false;
        if (!inventory_.claim(draft.c, part)) return false;
        claimed = true;
        const Device& device = *inventory_.device(part.memory.device);
        Event event = device_event(
            "composition.moved", device.switch_id, device.id,
            fmt::format("part {} follows its device to port {} of {}, vPPB {} of VCS {}", part.number,
                        part.port, device.switch_id.value, part.where.vppb, part.where.vcs));
        event.composition = draft.c.id;
        event.host = draft.c.host;
        draft.events.push_back(std::move(event));
        return true;
    };
    const SwitchId before = ref.switch_id();
    const Result<> durable = co_await journal(ref.entry, std::move(change), ref.number);
    if (!claimed) co_return;
    if (!durable) {
        (void)inventory_.claim(ref.entry->c, ref.part());
        co_return;
    }
    if (ref.switch_id() == before) co_return;
    switches_.at(before)->active.erase(id);
    switches_.at(ref.switch_id())->active.insert(id);
}

// Points the part to where its device is now; false when its host does not reach that, or not yet.
bool Core::lead_to(Part& part, const HostId& host) const {
    const Device* device = inventory_.device(part.memory.device);
    if (device == nullptr || !device->present) return false;
    const Vppb* own = inventory_.vppb(part.where);
    if (own != nullptr && own->status != BindingStatus::kUnbound) return false;
    if (device->switch_id == part.where.switch_id) {
        part.port = device->port;
        return true;
    }
    // Its memory is dirty wherever it is: whoever gets it next erases it there.
    if (part.state == CompositionState::kErasing) return false;
    const Switch& there = *inventory_.find_switch(device->switch_id);
    for (const HostAttachment& at : inventory_.host(host)->attach) {
        if (at.switch_id != there.id) continue;
        const auto vcs = std::ranges::find(there.vcss, at.vcs, &Vcs::id);
        if (vcs == there.vcss.end() || !vcs->enabled) continue;
        const auto free = std::ranges::find_if(
            vcs->vppbs, [](const Vppb& one) { return one.status == BindingStatus::kUnbound && !one.owner; });
        if (free == vcs->vppbs.end()) continue;
        part.where = {there.id, vcs->id, free->id};
        part.port = device->port;
        return true;
    }
    return false;
}

}  // namespace memtide::fm

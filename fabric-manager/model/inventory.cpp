#include "fabric-manager/model/inventory.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace memtide::fm {

namespace {

const LogicalDevice* find_in(const Device& device, LdId id) {
    const std::vector<LogicalDevice>& lds = device.lds;
    // Devices list their LDs in order, so that the id mostly is the index.
    if (id.value < lds.size() && lds[id.value].id == id) return &lds[id.value];
    const auto entry = std::ranges::find(lds, id, &LogicalDevice::id);
    return entry == lds.end() ? nullptr : &*entry;
}

}  // namespace

DeviceId device_id(DeviceKind kind, SerialNumber serial, const SwitchId& switch_id, std::uint8_t port) {
    if (serial.value == 0) return DeviceId(fmt::format("{}-port{}", switch_id.value, port));
    return DeviceId(fmt::format("{}-{:016x}", to_string(kind), serial.value));
}

// --- Set-up ---

void Inventory::add_switch(SwitchId id, std::string address) {
    Switch& entry = switches_[id];
    entry.id = std::move(id);
    entry.address = std::move(address);
}

void Inventory::add_host(HostId id, std::vector<HostAttachment> attach) {
    for (const HostAttachment& at : attach) host_at_.emplace(at, id);
    Host& entry = hosts_[id];
    entry.id = std::move(id);
    entry.attach = std::move(attach);
}

// --- What the switch says ---

void Inventory::apply(const SwitchId& id, const SwitchReading& reading) {
    Switch& entry = switches_[id];
    entry.ports = reading.ports;
    entry.vcss = reading.vcss;
    entry.inventoried = true;
    for (Port& port : entry.ports) {
        auto found = at_port_.find({id, port.id});
        if (found != at_port_.end()) port.device = found->second->id;
    }
    for (Vcs& vcs : entry.vcss) {
        const Host* host = host_at(id, vcs.id);
        if (host != nullptr) vcs.host = host->id;
    }
    for (auto it = claims_at_.lower_bound({id, 0, 0}); it != claims_at_.end() && it->first.switch_id == id;
         ++it)
        if (Vppb* own = find_vppb(it->first)) own->owner = it->second;
    rebind(id);
}

Result<DeviceId> Inventory::apply(const SwitchId& id, const DeviceReading& reading) {
    const DeviceId name = device_id(reading.kind, reading.serial, id, reading.port);
    const auto before = at_port_.find({id, reading.port});
    const auto known = devices_.find(name);
    if (known != devices_.end() && known->second.present)
        if (std::optional<Error> wrong = contradiction(id, reading, known->second)) {
            // What was known of this port is not so any more, whoever is right.
            if (before != at_port_.end()) device_gone(id, reading.port);
            return std::unexpected(*std::move(wrong));
        }
    if (before != at_port_.end() && before->second->id != name) device_gone(id, reading.port);

    Device& device = devices_[name];
    forget_sums(device);
    const std::size_t lds_before = device.lds.size();
    const bool new_here = !at_port_.contains({id, reading.port});
    device.id = name;
    device.kind = reading.kind;
    device.serial = reading.serial;
    device.size = reading.size;
    device.granularity = reading.granularity;
    attach_head(device, id, reading);
    device.present = true;
    read_lds(device, reading);
    at_port_[{id, reading.port}] = &device;
    Switch& owner = switches_[id];
    for (Port& port : owner.ports)
        if (port.id == reading.port) port.device = name;
    if (lds_before != device.lds.size())
        for (auto it = claims_on_.lower_bound({name, LdId{0}});
             it != claims_on_.end() && it->first.device == name; ++it) {
            const Claim& claim = claims_.at(it->second);
            // Parts of a device with one head are where it is.
            if (claim.where.switch_id == id || device.is_multi_headed()) mark(it->second, claim);
        }
    rebind(id, reading.port, reading.port);
    if (new_here && device.is_multi_headed()) forget_clean(name);
    return name;
}

void Inventory::apply(const SwitchId& id, std::uint8_t vcs, const std::vector<Vppb>& vppbs) {
    for (const Vppb& seen : vppbs) {
        Vppb* own = find_vppb({id, vcs, seen.id});
        if (own == nullptr) continue;
        if (own->status == seen.status && own->port == seen.port && own->ld == seen.ld) continue;
        if (LogicalDevice* before = bound_ld(id, *own)) {
            before->bound_at.reset();
            settle(*before);
        }
        own->status = seen.status;
        own->port = seen.port;
        own->ld = seen.ld;
        if (LogicalDevice* now = bound_ld(id, *own)) {
            now->bound_at = VppbAddress{id, vcs, seen.id};
            settle(*now);
        }
    }
}

LogicalDevice* Inventory::bound_ld(const SwitchId& id, const Vppb& vppb) {
    const Binding binding = binding_of(id, vppb);
    if (binding.ld != nullptr) forget_sums(*binding.device);
    return const_cast<LogicalDevice*>(binding.ld);
}

void Inventory::device_gone(const SwitchId& id, std::uint8_t port) {
    const auto found = at_port_.find({id, port});
    if (found == at_port_.end()) return;
    Device& device = *found->second;
    forget_sums(device);
    device.refused_carves.clear();
    const Head* head = device.head_at(id, port);
    for (LogicalDevice& ld : device.lds) {
        if (!is_reached(ld, head)) continue;
        ld.bound_at.reset();
        ld.clean = false;  // whoever pulls it can write to it elsewhere
        settle(ld);
    }
    if (head != nullptr) device.heads.erase(device.heads.begin() + (head - device.heads.data()));
    device.present = !device.heads.empty();
    if (device.present) {
        device.switch_id = device.heads.front().switch_id;
        device.port = device.heads.front().port;
    }
    at_port_.erase(found);
    for (Port& entry : switches_[id].ports)
        if (entry.id == port) entry.device.reset();
}

void Inventory::switch_up(const SwitchId& id, Time now) {
    Switch& entry = switches_[id];
    if (!entry.up) forget_sums(id);
    entry.up = true;
    entry.error.clear();
    entry.last_seen = now;
}

void Inventory::switch_speaks(const SwitchId& id, std::string dialect, bool detected, std::size_t in_flight) {
    Switch& entry = switches_[id];
    entry.dialect = std::move(dialect);
    entry.dialect_detected = detected;
    entry.in_flight = in_flight;
}

void Inventory::switch_down(const SwitchId& id, std::string error) {
    Switch& entry = switches_[id];
    if (entry.up) forget_sums(id);
    entry.up = false;
    entry.error = std::move(error);
}

void Inventory::forget_sums(const Device& device) { changed_.insert(&device); }

void Inventory::forget_sums(const SwitchId& id) {
    for (const Device* device : devices_behind(id)) forget_sums(*device);
}

// Derives from the vPPBs of a switch where its devices' LDs are bound.
void Inventory::rebind(const SwitchId& id, std::uint8_t first, std::uint8_t last) {
    std::map<LdAddress, VppbAddress> bound;
    for (const Vcs& vcs : switches_[id].vcss) {
        for (const Vppb& vppb : vcs.vppbs) {
            if (vppb.status != BindingStatus::kBoundLd && vppb.status != BindingStatus::kBoundPort) continue;
            if (vppb.port < first || vppb.port > last) continue;
            const Binding binding = binding_of(id, vppb);
            if (binding.ld != nullptr)
                bound.try_emplace(LdAddress{binding.device->id, binding.ld->id},
                                  VppbAddress{id, vcs.id, vppb.id});
        }
    }
    for (auto it = at_port_.lower_bound({id, first}); it != at_port_.end() && it->first.first == id; ++it) {
        if (it->first.second > last) break;
        Device& device = *it->second;
        forget_sums(device);
        const Head* head = device.head_at(id, it->first.second);
        for (LogicalDevice& ld : device.lds) {
            if (!is_reached(ld, head)) continue;
            const auto at = bound.find(LdAddress{device.id, ld.id});
            ld.bound_at = at == bound.end() ? std::nullopt : std::optional(at->second);
            settle(ld);
        }
    }
}

void Inventory::settle(LogicalDevice& ld) const {
    if (ld.dynamic) settle_offer(ld);
    if (ld.bound_at) {
        ld.clean = false;
        const bool foreign = !ld.owner && host_at(ld.bound_at->switch_id, ld.bound_at->vcs) == nullptr;
        ld.use = foreign ? LdUse::kForeign : LdUse::kBound;
    } else if (ld.quarantined) {
        ld.use = LdUse::kQuarantined;
    } else if (ld.owner) {
        ld.use = LdUse::kReserved;
    } else {
        // Of dynamic capacity nobody here has added, or offered, what is there.
        const bool is_empty = ld.size.value == 0 && !(ld.dynamic && ld.pending.value_or(false));
        const LdUse left = ld.dynamic ? LdUse::kForeign : LdUse::kFree;
        ld.use = is_empty ? LdUse::kUnallocated : left;
    }
}

// What the owner was offered is its own until the device says that it is not any more. Before it was offered,
// the plan counts.
void Inventory::settle_offer(LogicalDevice& ld) const {
    const auto claim = ld.owner ? claims_.find(*ld.owner) : claims_.end();
    ld.offered = claim != claims_.end() && claim->second.planned.empty() &&
                 ld.accepted < claim->second.size && ld.pending.value_or(true);
    ld.size = ld.offered ? claim->second.size : ld.accepted;
}

// --- What the manager does ---

void Inventory::resize(const LdAddress& address, Bytes size, SerialNumber serial) {
    LogicalDevice* entry = find_ld(address);
    if (entry == nullptr) return;
    if (entry->size != size) {
        entry->clean = false;
        devices_[address.device].refused_carves.clear();
    }
    entry->size = size;
    entry->accepted = {};
    entry->pending = size.value != 0;
    if (serial.value != 0) entry->serial = serial;
    settle(*entry);
}

void Inventory::accepted(const LdAddress& address, Bytes size) {
    LogicalDevice* entry = find_ld(address);
    if (entry == nullptr) return;
    entry->accepted = size;
    settle(*entry);
}

void Inventory::set_clean(const LdAddress& address, bool clean) {
    LogicalDevice* entry = find_ld(address);
    if (entry != nullptr) entry->clean = clean && !entry->bound_at;
}

void Inventory::set_held(const DeviceId& device, std::string why) {
    const auto found = devices_.find(device);
    if (found != devices_.end()) found->second.held = std::move(why);
}

void Inventory::set_health(const DeviceId& device, DeviceHealth health) {
    const auto found = devices_.find(device);
    if (found == devices_.end()) return;
    std::vector<HealthFinding> critical = findings(health);
    std::erase_if(critical, [](const auto& one) { return one.level != HealthLevel::kCritical; });
    found->second.unfit = describe(critical);
    found->second.health = std::move(health);
}

void Inventory::set_held(const SwitchId& id, std::string why) {
    const auto found = switches_.find(id);
    if (found != switches_.end()) found->second.held = std::move(why);
}

void Inventory::set_quarantined(const LdAddress& address, bool quarantined) {
    LogicalDevice* entry = find_ld(address);
    if (entry == nullptr) return;
    entry->quarantined = quarantined;
    if (quarantined) entry->clean = false;
    settle(*entry);
}

void Inventory::forget_clean(const DeviceId& device) {
    const auto found = devices_.find(device);
    if (found == devices_.end()) return;
    forget_sums(found->second);
    for (LogicalDevice& entry : found->second.lds) entry.clean = false;
}

void Inventory::forget_clean(const SwitchId& id) {
    for (const Device* device : devices_behind(id)) {
        forget_clean(device->id);
        devices_[device->id].refused_carves.clear();
    }
}

// --- Looking ---

std::vector<const Device*> Inventory::devices_behind(const SwitchId& id) const {
    std::vector<const Device*> devices;
    devices.reserve(find_switch(id) == nullptr ? 0 : find_switch(id)->ports.size());
    for (auto it = at_port_.lower_bound({id, 0}); it != at_port_.end() && it->first.first == id; ++it) {
        const Device& device = *it->second;
        // Another head of it may be at the same switch.
        if (device.is_multi_headed() && std::ranges::find(devices, &device) != devices.end()) continue;
        devices.push_back(&device);
    }
    return devices;
}

std::vector<std::uint8_t> Inventory::ports_with_devices(const SwitchId& id) const {
    std::vector<std::uint8_t> ports;
    for (auto it = at_port_.lower_bound({id, 0}); it != at_port_.end() && it->first.first == id; ++it)
        ports.push_back(it->first.second);
    return ports;
}

bool Inventory::shows(const SwitchId& id, std::uint8_t port, const LdAddress& memory) const {
    const Device* there = device_at(id, port);
    if (there == nullptr || there->id != memory.device) return false;
    const LogicalDevice* own = ld(memory);
    return !there->is_multi_headed() || (own != nullptr && is_reached(*own, there->head_at(id, port)));
}

Inventory::Binding Inventory::binding_of(const SwitchId& id, const Vppb& vppb) const {
    if (vppb.status != BindingStatus::kBoundLd && vppb.status != BindingStatus::kBoundPort) return {};
    const Device* there = device_at(id, vppb.port);
    if (there == nullptr) return {};
    const Head* head = there->head_at(id, vppb.port);
    if (head != nullptr && vppb.status == BindingStatus::kBoundPort) {
        // The head of an SLD has one LD.
        const auto own = std::ranges::find(there->lds, head->number, &LogicalDevice::head);
        if (there->kind != DeviceKind::kSld || own == there->lds.end()) return {};
        return {there, &*own};
    }
    const LogicalDevice* found =
        find_in(*there, vppb.status == BindingStatus::kBoundLd ? vppb.ld : kWholeDevice);
    if (found == nullptr || !is_reached(*found, head)) return {};
    return {there, found};
}

const LogicalDevice* Inventory::bound_to(const SwitchId& id, const Vppb& vppb) const {
    return binding_of(id, vppb).ld;
}

std::optional<std::pair<SwitchId, std::uint8_t>> Inventory::way_to(const LdAddress& memory) const {
    const Device* there = device(memory.device);
    const LogicalDevice* own = ld(memory);
    if (there == nullptr || own == nullptr || !there->present) return std::nullopt;
    if (!there->is_multi_headed()) return std::pair(there->switch_id, there->port);
    for (const Head& head : there->heads)
        if (is_reached(*own, &head)) return std::pair(head.switch_id, head.port);
    return std::nullopt;
}

Host* Inventory::host(const HostId& id) {
    const auto found = hosts_.find(id);
    return found == hosts_.end() ? nullptr : &found->second;
}
const Host* Inventory::host(const HostId& id) const { return const_cast<Inventory*>(this)->host(id); }

const Switch* Inventory::find_switch(const SwitchId& id) const {
    const auto found = switches_.find(id);
    return found == switches_.end() ? nullptr : &found->second;
}

const Device* Inventory::device(const DeviceId& id) const {
    const auto found = devices_.find(id);
    return found == devices_.end() ? nullptr : &found->second;
}

const Device* Inventory::device_at(const SwitchId& id, std::uint8_t port) const {
    const auto found = at_port_.find({id, port});
    return found == at_port_.end() ? nullptr : found->second;
}

// For those who change it.
LogicalDevice* Inventory::find_ld(const LdAddress& address) {
    const auto found = devices_.find(address.device);
    if (found == devices_.end()) return nullptr;
    forget_sums(found->second);
    return const_cast<LogicalDevice*>(find_in(found->second, address.ld));
}
const LogicalDevice* Inventory::ld(const LdAddress& address) const {
    const auto found = devices_.find(address.device);
    return found == devices_.end() ? nullptr : find_in(found->second, address.ld);
}

Vppb* Inventory::find_vppb(const VppbAddress& address) {
    const auto found = switches_.find(address.switch_id);
    if (found == switches_.end()) return nullptr;
    const auto vcs = std::ranges::find(found->second.vcss, address.vcs, &Vcs::id);
    if (vcs == found->second.vcss.end()) return nullptr;
    const auto entry = std::ranges::find(vcs->vppbs, address.vppb, &Vppb::id);
    return entry == vcs->vppbs.end() ? nullptr : &*entry;
}
const Vppb* Inventory::vppb(const VppbAddress& address) const {
    return const_cast<Inventory*>(this)->find_vppb(address);
}

const Host* Inventory::host_at(const SwitchId& id, std::uint8_t vcs) const {
    const auto found = host_at_.find(HostAttachment{id, vcs});
    return found == host_at_.end() ? nullptr : host(found->second);
}

}  // namespace memtide::fm

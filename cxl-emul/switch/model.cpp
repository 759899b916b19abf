#include "cxl-emul/switch/model.h"

#include <algorithm>
#include <utility>

namespace memtide::emul {
namespace {

std::optional<std::size_t> index_of_device(const SwitchConfig& config, const PortConfig& port) {
    const auto found = std::ranges::find(config.devices, port.device, &DeviceConfig::name);
    if (!port.device || found == config.devices.end()) return std::nullopt;
    return static_cast<std::size_t>(found - config.devices.begin());
}

// The LD of a bridge is nobody's any more. Whoever is bound to it next must find nothing of this host.
void let_go(SwitchModel& model, VirtualBridge& bridge) {
    model.ld_of(bridge).taken_by.reset();
    bridge.state = VirtualBridge::State::kUnbound;
    Device& device = model.devices[model.ports[bridge.port].device.value()];
    if (!device.dynamic) return;
    device.dynamic->memory.detach(bridge.ld);
    device.dynamic->log_events();
    device.dynamic->host_events[bridge.ld] = EventLogs();
    device.dynamic->interrupts[bridge.ld] = false;
}

void finish_bind(SwitchModel& model, VppbId id, bool succeeded) {
    VirtualBridge& bridge = model.bridge(id);
    if (succeeded) {
        bridge.state = VirtualBridge::State::kBound;
        return;
    }
    model.ld_of(bridge).taken_by.reset();
    bridge.state = VirtualBridge::State::kUnbound;
}

void finish_unbind(SwitchModel& model, VppbId id, bool succeeded) {
    VirtualBridge& bridge = model.bridge(id);
    if (!succeeded) {
        bridge.state = VirtualBridge::State::kBound;
        return;
    }
    let_go(model, bridge);
}

DcdState make_dynamic(const DeviceConfig& config) {
    std::vector<DynamicCapacity::Region> regions;
    std::uint64_t base = 0;
    for (const DcRegionConfig& region : config.regions) {
        regions.push_back(
            {{base, base + region.size.value}, region.block.value, region.shareable, region.sanitize});
        base += region.size.value;
    }
    return {.memory = DynamicCapacity(std::move(regions), config.lds.size(),
                                      {.extents = config.max_extents, .tags = config.max_tags}),
            .events = {},
            .host_events = std::vector<EventLogs>(config.lds.size()),
            .interrupts = std::vector<bool>(config.lds.size())};
}

void finish_pid_binding(SwitchModel& model, VppbId id, bool succeeded) {
    VirtualBridge& bridge = model.bridge(id);
    const bool was_binding = bridge.pid->state == VirtualBridge::State::kBinding;
    if (was_binding == succeeded)
        bridge.pid->state = VirtualBridge::State::kBound;
    else
        bridge.pid.reset();
}

}  // namespace

std::optional<std::size_t> reachable_device(const Port& port) {
    return port.device_link_up && port.device_plugged ? port.device : std::nullopt;
}

std::shared_ptr<Device> make_device(const DeviceConfig& config) {
    auto device = std::make_shared<Device>();
    device->config = config;
    if (config.kind == DeviceKind::kDcd) device->dynamic = make_dynamic(config);
    device->lds.resize(config.lds.empty() ? 1 : config.lds.size());
    reset(*device);
    for (std::size_t ld = 0; ld < config.demands.size(); ++ld)
        device->lds[ld].qos.demand = config.demands[ld].value;
    return device;
}

void reset(Device& device) {
    if (std::ranges::any_of(device.lds, [](const Ld& ld) { return ld.taken_by.has_value(); })) return;
    device.response_limit = kLargestMessage;
    device.qos = {};
    device.pci = {};
    if (device.dynamic) {
        device.dynamic->memory.power_on();
        device.dynamic->events = EventLogs();
        for (EventLogs& logs : device.dynamic->host_events) logs = EventLogs();
    }
    Bytes offset;
    for (std::size_t i = 0; i < device.lds.size(); ++i) {
        Ld& ld = device.lds[i];
        ld.response_limit = kLargestMessage;
        ld.qos = {.demand = ld.qos.demand};  // the host's, which nobody sets
        ld.pci = {};
        ld.offset = offset;
        ld.size = device.config.lds.empty() ? device.config.size : device.config.lds[i];
        offset += ld.size;
    }
}

void unbind_at_once(SwitchModel& model, VppbId id) {
    VirtualBridge& bridge = model.bridge(id);
    if (bridge.state != VirtualBridge::State::kUnbound) let_go(model, bridge);
    bridge = {};
}

void reset(SwitchModel& model) {
    for (std::size_t vcs = 0; vcs < model.vcss.size(); ++vcs)
        for (std::size_t vppb = 0; vppb < model.vcss[vcs].vppbs.size(); ++vppb)
            unbind_at_once(model, {vcs, static_cast<std::uint8_t>(vppb)});
    for (Port& port : model.ports) {
        port.perst_asserted = false;
        port.config_writes.clear();
    }
    model.events = EventLogs();
    model.interrupts = {};
    model.domain_validation.reset();
    model.response_limit = kLargestMessage;
    model.background = {};
}

std::optional<std::size_t> ld_of_sld(const Device& device, std::uint8_t head) {
    for (std::size_t ld = 0; ld < device.lds.size(); ++ld)
        if (device.config.is_at_head(ld, head)) return ld;
    return std::nullopt;
}

bool Device::is_taken(std::uint8_t head) const {
    for (std::size_t i = 0; i < lds.size(); ++i)
        if (config.is_at_head(i, head) && lds[i].taken_by) return true;
    return false;
}

SwitchModel::SwitchModel(const SwitchConfig& config, const SharedDevices& shared)
    : serial(config.serial), pbr(config.pbr) {
    for (const DeviceConfig& device : config.devices) {
        const auto known = shared.find(device.name);
        devices.add(known == shared.end() ? make_device(device) : known->second);
    }
    for (const PortConfig& port : config.ports) {
        Port& added = ports.emplace_back();
        added.config = port;
        added.device = index_of_device(config, port);
        if (!added.device) continue;
        Device& device = devices[*added.device];
        for (std::size_t ld = 0; ld < device.lds.size(); ++ld)
            if (device.config.is_at_head(ld, port.head)) device.lds[ld].taken_by.reset();
    }
    for (const VcsConfig& vcs : config.vcss) vcss.push_back({vcs, std::vector<VirtualBridge>(vcs.vppbs)});
}

std::optional<std::size_t> SwitchModel::find_port(std::uint8_t id) const {
    for (std::size_t i = 0; i < ports.size(); ++i)
        if (ports[i].config.id == id) return i;
    return std::nullopt;
}

std::optional<std::size_t> SwitchModel::find_vcs(std::uint8_t id) const {
    for (std::size_t i = 0; i < vcss.size(); ++i)
        if (vcss[i].exists && vcss[i].config.id == id) return i;
    return std::nullopt;
}

const Device& SwitchModel::device_of(const VirtualBridge& bridge) const {
    return devices[ports[bridge.port].device.value()];
}

const Ld& SwitchModel::ld_of(const VirtualBridge& bridge) const { return device_of(bridge).lds[bridge.ld]; }

Ld& SwitchModel::ld_of(const VirtualBridge& bridge) {
    return devices[ports[bridge.port].device.value()].lds[bridge.ld];
}

std::optional<std::size_t> device_index_of(const SwitchModel& model, const Operation& operation) {
    if (const auto* sanitize = std::get_if<SanitizeOperation>(&operation)) return sanitize->device;
    if (std::holds_alternative<PidBindingOperation>(operation)) return std::nullopt;
    const auto* bind = std::get_if<BindOperation>(&operation);
    const VppbId id = bind != nullptr ? bind->vppb : std::get<UnbindOperation>(operation).vppb;
    return model.ports[model.bridge(id).port].device.value();
}

Component& component_of(SwitchModel& model, const Operation& operation) {
    const auto* sanitize = std::get_if<SanitizeOperation>(&operation);
    if (sanitize == nullptr) return model;
    return model.devices[sanitize->device].lds[sanitize->ld];
}

void finish(SwitchModel& model, const Operation& operation, fmapi::ReturnCode code) {
    const bool succeeded = code == fmapi::ReturnCode::kSuccess;
    if (const auto* bind = std::get_if<BindOperation>(&operation)) finish_bind(model, bind->vppb, succeeded);
    if (const auto* unbind = std::get_if<UnbindOperation>(&operation))
        finish_unbind(model, unbind->vppb, succeeded);
    if (const auto* pid = std::get_if<PidBindingOperation>(&operation))
        finish_pid_binding(model, pid->vppb, succeeded);
    Component::Background& background = component_of(model, operation).background;
    background.running = false;
    background.return_code = code;
    if (succeeded) background.percent = 100;
    background.can_abort = false;
    background.abort_requested = false;
}

}  // namespace memtide::emul

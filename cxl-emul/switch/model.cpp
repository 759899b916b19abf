#include "cxl-emul/switch/model.h"

#include <algorithm>
#include <utility>

namespace memtide::emul {
namespace {

Device make_device(const DeviceConfig& config) {
    Device device;
    device.config = config;
    if (!device.is_mld()) {
        device.lds.resize(1);
        device.lds[0].size = config.size;
        return device;
    }
    Bytes offset;
    for (const Bytes size : config.lds) {
        Ld& ld = device.lds.emplace_back();
        ld.offset = offset;
        ld.size = size;
        offset += size;
    }
    return device;
}

std::optional<std::size_t> index_of_device(const SwitchConfig& config, const PortConfig& port) {
    const auto found = std::ranges::find(config.devices, port.device, &DeviceConfig::name);
    if (!port.device || found == config.devices.end()) return std::nullopt;
    return static_cast<std::size_t>(found - config.devices.begin());
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
    model.ld_of(bridge).taken_by.reset();
    bridge.state = VirtualBridge::State::kUnbound;
}

}  // namespace

std::optional<std::size_t> reachable_device(const Port& port) {
    return port.device_link_up && port.device_plugged ? port.device : std::nullopt;
}

bool Device::is_taken() const {
    return std::ranges::any_of(lds, [](const Ld& ld) { return ld.taken_by.has_value(); });
}

SwitchModel::SwitchModel(const SwitchConfig& config) : serial(config.serial) {
    for (const DeviceConfig& device : config.devices) devices.push_back(make_device(device));
    for (const PortConfig& port : config.ports) {
        Port& added = ports.emplace_back();
        added.config = port;
        added.device = index_of_device(config, port);
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
        if (vcss[i].config.id == id) return i;
    return std::nullopt;
}

const Device& SwitchModel::device_of(const VirtualBridge& bridge) const {
    return devices[ports[bridge.port].device.value()];
}

const Ld& SwitchModel::ld_of(const VirtualBridge& bridge) const { return device_of(bridge).lds[bridge.ld]; }

Ld& SwitchModel::ld_of(const VirtualBridge& bridge) {
    return devices[ports[bridge.port].device.value()].lds[bridge.ld];
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
    Component::Background& background = component_of(model, operation).background;
    background.running = false;
    background.return_code = code;
    if (succeeded) background.percent = 100;
    background.can_abort = false;
    background.abort_requested = false;
}

}  // namespace memtide::emul

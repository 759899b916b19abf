#include "cxl-emul/faults/switch_equipment.h"

#include <algorithm>
#include <utility>

namespace memtide::emul {

SwitchEquipment::SwitchEquipment(Topology topology, std::vector<Switch*> switches)
    : topology_(std::move(topology)), switches_(std::move(switches)) {
    std::erase_if(topology_.switches, [&](const SwitchConfig& config) {
        return std::ranges::none_of(switches_, [&](const Switch* one) { return one->name() == config.name; });
    });
}

template <typename Do>
void SwitchEquipment::at(const SwitchId& name, Do what) {
    for (Switch* one : switches_)
        if (one->name() == name) what(*one);
}

void SwitchEquipment::disturb(const SwitchId& name, std::shared_ptr<Disturbance> disturbance) {
    at(name, [&](Switch& one) { one.disturb(disturbance); });
}

void SwitchEquipment::look_again(const SwitchId& name) {
    at(name, [](Switch& one) { one.look_again(); });
}

void SwitchEquipment::set_port_link(const SwitchId& name, std::uint8_t port, bool up) {
    at(name, [&](Switch& one) { one.set_port_link(port, up); });
}

void SwitchEquipment::set_port_plugged(const SwitchId& name, std::uint8_t port, bool plugged) {
    at(name, [&](Switch& one) { one.set_port_plugged(port, plugged); });
}

void SwitchEquipment::power_off(const SwitchId& name, bool keeps_state) {
    at(name, [&](Switch& one) { one.power_off(keeps_state); });
}

void SwitchEquipment::power_on(const SwitchId& name) {
    at(name, [](Switch& one) { one.power_on(); });
}

void SwitchEquipment::lose_device_state(const DeviceId& device) {
    for (Switch* one : switches_) one->lose_device_state(device);
}

void SwitchEquipment::set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) {
    for (Switch* one : switches_) one->set_device_health(device, health);
}

void SwitchEquipment::report_error(const DeviceId& device, fmapi::MldPortEvent severity) {
    for (Switch* one : switches_) one->report_ld_error(device, severity);
}

}  // namespace memtide::emul

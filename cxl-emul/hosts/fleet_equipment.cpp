#include "cxl-emul/hosts/fleet_equipment.h"

#include <utility>

namespace memtide::emul {

template <typename Do>
void FleetEquipment::at_each_with(const DeviceId& device, Do what) {
    for (const SwitchConfig& config : topology_.switches)
        if (config.device(device) != nullptr) what(fleet_.life_of(config.name));
}

void FleetEquipment::disturb(const SwitchId& name, std::shared_ptr<Disturbance> disturbance) {
    fleet_.life_of(name).disturb(std::move(disturbance));
}

void FleetEquipment::look_again(const SwitchId& name) {
    if (Switch* running = fleet_.life_of(name).running()) running->look_again();
}

void FleetEquipment::set_port_link(const SwitchId& name, std::uint8_t port, bool up) {
    fleet_.set_port_link(name, port, up);
}

void FleetEquipment::set_port_plugged(const SwitchId& name, std::uint8_t port, bool plugged) {
    fleet_.set_port_plugged(name, port, plugged);
}

void FleetEquipment::power_off(const SwitchId& name, bool keeps_state) {
    if (Switch* running = fleet_.life_of(name).running()) running->power_off(keeps_state);
}

void FleetEquipment::power_on(const SwitchId& name) {
    if (Switch* running = fleet_.life_of(name).running()) running->power_on();
}

void FleetEquipment::lose_device_state(const DeviceId& device) {
    at_each_with(device, [&](SwitchLife& life) {
        if (life.running() != nullptr) life.running()->lose_device_state(device);
    });
}

void FleetEquipment::set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) {
    at_each_with(device, [&](SwitchLife& life) { life.set_device_health(device, health); });
}

void FleetEquipment::report_error(const DeviceId& device, fmapi::MldPortEvent severity) {
    at_each_with(device, [&](SwitchLife& life) {
        if (life.running() != nullptr) life.running()->report_ld_error(device, severity);
    });
}

}  // namespace memtide::emul

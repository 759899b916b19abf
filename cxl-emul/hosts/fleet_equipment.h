#pragma once

#include "cxl-emul/faults/equipment.h"
#include "cxl-emul/hosts/fleet.h"

namespace memtide::emul {

// The switches, devices and hosts of a fleet, for faults on demand. The fleet outlives it.
class FleetEquipment final : public Equipment {
  public:
    explicit FleetEquipment(Fleet& fleet) : fleet_(fleet), topology_(fleet.topology()) {}

    [[nodiscard]] const Topology& topology() const override { return topology_; }
    void disturb(const SwitchId& name, std::shared_ptr<Disturbance> disturbance) override;
    void look_again(const SwitchId& name) override;
    void set_port_link(const SwitchId& name, std::uint8_t port, bool up) override;
    void set_port_plugged(const SwitchId& name, std::uint8_t port, bool plugged) override;
    // A switch that is off already, since somebody turned it off otherwise, is not touched.
    void power_off(const SwitchId& name, bool keeps_state) override;
    void power_on(const SwitchId& name) override;
    void lose_device_state(const DeviceId& device) override;
    void set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) override;
    void report_error(const DeviceId& device, fmapi::MldPortEvent severity) override;

  private:
    template <typename Do>
    void at_each_with(const DeviceId& device, Do what);

    Fleet& fleet_;
    Topology topology_;
};

}  // namespace memtide::emul

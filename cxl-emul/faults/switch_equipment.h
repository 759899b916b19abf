#pragma once

#include <vector>

#include "cxl-emul/faults/equipment.h"
#include "cxl-emul/switch/switch.h"

namespace memtide::emul {

// The switches of a topology that run in this process, without hosts.
class SwitchEquipment : public Equipment {
  public:
    // Only switches that are there are named by topology(). They outlive this.
    SwitchEquipment(Topology topology, std::vector<Switch*> switches);

    [[nodiscard]] const Topology& topology() const override { return topology_; }
    void disturb(const SwitchId& name, std::shared_ptr<Disturbance> disturbance) override;
    void look_again(const SwitchId& name) override;
    void set_port_link(const SwitchId& name, std::uint8_t port, bool up) override;
    void set_port_plugged(const SwitchId& name, std::uint8_t port, bool plugged) override;
    void power_off(const SwitchId& name, bool keeps_state) override;
    void power_on(const SwitchId& name) override;
    void lose_device_state(const DeviceId& device) override;
    void set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) override;
    void report_error(const DeviceId& device, fmapi::MldPortEvent severity) override;

  private:
    template <typename Do>
    void at(const SwitchId& name, Do what);

    Topology topology_;
    std::vector<Switch*> switches_;
};

}  // namespace memtide::emul

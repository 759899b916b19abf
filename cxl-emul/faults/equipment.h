#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cxl-emul/faults/fault.h"
#include "cxl-emul/switch/disturbance.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// The switches, devices and hosts that faults happen to. A switch program, a fleet of emulated hosts and a
// rack each have their own. Names are those of topology(). All calls come from one thread, which is the
// switches', too.
class Equipment {
  public:
    virtual ~Equipment() = default;
    [[nodiscard]] virtual const Topology& topology() const = 0;

    // What is asked about all answers and operations of the switch from now on, over its power cycles.
    virtual void disturb(const SwitchId& name, std::shared_ptr<Disturbance> disturbance) = 0;
    // Operations of the switch that a disturbance holds may go on.
    virtual void look_again(const SwitchId& name) = 0;

    virtual void set_port_link(const SwitchId& name, std::uint8_t port, bool up) = 0;
    // Of a port that has a device.
    virtual void set_port_plugged(const SwitchId& name, std::uint8_t port, bool plugged) = 0;

    virtual void power_off(const SwitchId& name, bool keeps_state) = 0;
    virtual void power_on(const SwitchId& name) = 0;
    virtual void lose_device_state(const DeviceId& device) = 0;

    virtual void set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) = 0;
    virtual void report_error(const DeviceId& device, fmapi::MldPortEvent severity) = 0;

    // A media error or poison as the hosts that have the device see it; nothing where there are no real ones.
    virtual void tell_hosts(const DeviceId& device, const Fault& fault) {
        (void)device;
        (void)fault;
    }
};

}  // namespace memtide::emul

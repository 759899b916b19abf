#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cxl-emul/faults/equipment.h"
#include "cxl-emul/faults/fault_plan.h"

namespace memtide::emul {

// Faults of links, power and devices, of which several may be there at a time: a port is up again when none
// holds it down any more.
class EquipmentFaults {
  public:
    explicit EquipmentFaults(Equipment& equipment) : equipment_(equipment) {}

    // A fault of FaultLayer::kEquipment, or a lying device, which needs nothing here.
    void begin(const ActiveFault& active);
    // After begin(), once.
    void end(const ActiveFault& active);

  private:
    using PortKey = std::pair<SwitchId, std::uint8_t>;

    [[nodiscard]] std::vector<PortKey> ports_of(const FaultPlace& place) const;
    void set_links(const FaultPlace& place, bool up);
    void set_plugged(const FaultPlace& place, bool plugged);
    void set_power(const ActiveFault& active, bool on);
    void set_health(const FaultPlace& place, FaultKind kind, bool begins);

    Equipment& equipment_;
    std::map<PortKey, int> down_;     // by how many faults
    std::map<PortKey, int> removed_;  // the same
    std::map<SwitchId, int> off_;     // the same
    std::map<DeviceId, std::multiset<FaultKind>> ailments_;
};

}  // namespace memtide::emul

#include "cxl-emul/faults/equipment_faults.h"

#include "cxl-emul/faults/health.h"

namespace memtide::emul {

std::vector<EquipmentFaults::PortKey> EquipmentFaults::ports_of(const FaultPlace& place) const {
    std::vector<PortKey> found;
    for (const SwitchId& name : place.switches)
        for (const PortConfig& port : equipment_.topology().find_switch(name)->ports) {
            const bool this_one = place.port ? *place.port == port.id
                                             : (place.device && port.device == place.device) ||
                                                   (place.host && port.host == place.host);
            if (this_one) found.emplace_back(name, port.id);
        }
    return found;
}

void EquipmentFaults::set_links(const FaultPlace& place, bool up) {
    for (const PortKey& key : ports_of(place)) {
        int& faults = down_[key];
        faults += up ? -1 : 1;
        if (faults == (up ? 0 : 1)) equipment_.set_port_link(key.first, key.second, up);
    }
}

void EquipmentFaults::set_plugged(const FaultPlace& place, bool plugged) {
    for (const PortKey& key : ports_of(place)) {
        int& faults = removed_[key];
        faults += plugged ? -1 : 1;
        if (faults == (plugged ? 0 : 1)) equipment_.set_port_plugged(key.first, key.second, plugged);
    }
}

void EquipmentFaults::set_power(const ActiveFault& active, bool on) {
    const FaultPlace& place = active.place();
    if (place.device) {
        if (!on && !active.fault().keeps_state) equipment_.lose_device_state(*place.device);
        set_links(place, on);
        return;
    }
    for (const SwitchId& name : place.switches) {
        int& faults = off_[name];
        faults += on ? -1 : 1;
        if (!on && faults == 1) equipment_.power_off(name, active.fault().keeps_state);
        if (on && faults == 0) equipment_.power_on(name);
    }
}

void EquipmentFaults::set_health(const FaultPlace& place, FaultKind kind, bool begins) {
    std::multiset<FaultKind>& all = ailments_[*place.device];
    if (begins)
        all.insert(kind);
    else if (const auto one = all.find(kind); one != all.end())
        all.erase(one);
    const std::vector<FaultKind> now(all.begin(), all.end());
    equipment_.set_device_health(*place.device, health_with(now));
}

void EquipmentFaults::begin(const ActiveFault& active) {
    const FaultPlace& place = active.place();
    switch (active.fault().kind) {
        case FaultKind::kLinkDown:
            return set_links(place, false);
        case FaultKind::kSurpriseRemoval:
            return set_plugged(place, false);
        case FaultKind::kPowerCycle:
            return set_power(active, false);
        case FaultKind::kMediaError:
            set_health(place, active.fault().kind, true);
            equipment_.report_error(*place.device, active.fault().severity);
            return equipment_.tell_hosts(*place.device, active.fault());
        case FaultKind::kPoison:
            set_health(place, active.fault().kind, true);
            return equipment_.tell_hosts(*place.device, active.fault());
        case FaultKind::kWorn:
        case FaultKind::kFailing:
            return set_health(place, active.fault().kind, true);
        default:
            return;
    }
}

void EquipmentFaults::end(const ActiveFault& active) {
    const FaultPlace& place = active.place();
    switch (active.fault().kind) {
        case FaultKind::kLinkDown:
            return set_links(place, true);
        case FaultKind::kSurpriseRemoval:
            return set_plugged(place, true);
        case FaultKind::kPowerCycle:
            return set_power(active, true);
        case FaultKind::kMediaError:
        case FaultKind::kPoison:
        case FaultKind::kWorn:
        case FaultKind::kFailing:
            return set_health(place, active.fault().kind, false);
        default:
            return;
    }
}

}  // namespace memtide::emul

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

// Something that happened, kept in the store; empty fields do not apply. Ids only grow, with gaps.
struct Event {
    std::uint64_t id = 0;
    Time time;
    // composition.state, composition.drain-overdue, composition.retry, composition.adopted, switch.up,
    // switch.down, switch.record, device.added, device.removed, device.moved, device.flapping, device.settled
    // (and so on for switch and host), composition.moved, clock.set, ld.quarantined, ld.recovered,
    // host.agent, host.rebooted, host.warning, host.refused, store.recovered, store.damaged, store.mended
    std::string type;
    std::optional<CompositionId> composition;
    std::optional<HostId> host;
    std::optional<SwitchId> switch_id;
    std::optional<DeviceId> device;
    std::string state;   // composition.state: the new state
    std::string code;    // machine-readable cause
    std::string detail;  // for people
    bool forced = false;
    friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace memtide::fm

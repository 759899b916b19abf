#pragma once

#include "common/base/ids.h"
#include "common/metrics/registry.h"
#include "fabric-manager/fmapi/client.h"

namespace memtide::fm {

// Counts a switch's commands, and measures their round trips by command over all switches. The registry must
// outlive it.
RoundTripObserver round_trip_meter(metrics::Registry& registry, const SwitchId& switch_id);

}  // namespace memtide::fm

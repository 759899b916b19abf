#pragma once

#include <optional>
#include <vector>

#include "fabric-manager/placement/candidates.h"

namespace memtide::fm {

// Parts of a plan, with LDs and vPPBs; nullopt when the candidates do not offer that. Never more parts than
// `most_parts` and the policy's max_devices, never two parts on one device.
using Choice = std::optional<std::vector<PartPlacement>>;

// As few devices as possible. One device: the best LD fit, then the one with the least left. Several: the
// largest offers first, and for the rest the smallest offer that is enough.
Choice choose_packed(const Candidates& candidates, const PlacementRequest& request);

// Equal parts on as many devices as can be had, the least loaded first, over switches in turn.
Choice choose_spread(const Candidates& candidates, const PlacementRequest& request);

// `ways` equal parts on as many devices. Over several of the host's attachments only where a window of the
// host interleaves so many host bridges (`window_ways`), with the same number of parts at each.
Choice choose_interleaved(const Candidates& candidates, const PlacementRequest& request,
                          const std::vector<std::uint8_t>& window_ways);

}  // namespace memtide::fm

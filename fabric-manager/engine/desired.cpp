#include "fabric-manager/engine/desired.h"

#include <algorithm>

namespace memtide::fm {

namespace {

bool is_to_be_online(const Part& part) {
    return part.state == CompositionState::kOnlining || part.state == CompositionState::kOnline;
}
bool is_to_be_offline(const Part& part) {
    return part.state == CompositionState::kDraining || part.state == CompositionState::kUnbinding;
}

}  // namespace

std::optional<DesiredRegion> desired_region(const Composition& c, std::uint32_t number) {
    DesiredRegion region{{c.id, number}, {}, {}, true, false, std::nullopt, std::nullopt};
    bool all_online = true;
    for (const Part& part : c.parts) {
        if (part.region != number || is_end(part.state)) continue;
        const bool offline = is_to_be_offline(part);
        if (!is_to_be_online(part)) all_online = false;
        if (offline) region.online = false;
        if (!offline && !is_to_be_online(part)) continue;
        region.serials.push_back(part.serial);
        region.size += part.size;
        region.force = region.force || part.forced;
        if (part.drain_deadline) region.drain_deadline = part.drain_deadline;
    }
    if (region.serials.empty() || (region.online && !all_online)) return std::nullopt;
    return region;
}

std::vector<DesiredRegion> desired_regions(const Composition& c) {
    std::vector<DesiredRegion> result;
    for (auto part = c.parts.begin(); part != c.parts.end(); ++part) {
        const bool seen = std::any_of(c.parts.begin(), part,
                                      [&](const Part& other) { return other.region == part->region; });
        if (seen) continue;
        if (auto region = desired_region(c, part->region)) result.push_back(*std::move(region));
    }
    return result;
}

bool is_unused(const Composition& c, std::uint32_t region) {
    return !c.adopted && std::ranges::none_of(c.parts, [&](const Part& part) {
        return part.region == region && !part.boot_id.empty();
    });
}

}  // namespace memtide::fm

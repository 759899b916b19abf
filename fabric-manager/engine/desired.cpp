#include "fabric-manager/engine/desired.h"

#include <algorithm>
#include <map>

namespace memtide::fm {

namespace {

bool is_to_be_online(const Part& part) {
    return part.state == CompositionState::kOnlining || part.state == CompositionState::kOnline;
}
bool is_to_be_offline(const Part& part) {
    return part.state == CompositionState::kDraining || part.state == CompositionState::kUnbinding;
}

}  // namespace

std::vector<DesiredRegion> desired_regions(const Composition& c) {
    std::map<std::uint32_t, std::vector<const Part*>> regions;
    for (const Part& part : c.parts)
        if (!is_end(part.state)) regions[part.region].push_back(&part);
    std::vector<DesiredRegion> result;
    for (const auto& [number, parts] : regions) {
        const bool offline =
            std::ranges::any_of(parts, [](const Part* part) { return is_to_be_offline(*part); });
        const bool online =
            std::ranges::all_of(parts, [](const Part* part) { return is_to_be_online(*part); });
        if (!offline && !online) continue;
        DesiredRegion region{{c.id, number}, {}, {}, !offline, false, std::nullopt, std::nullopt};
        for (const Part* part : parts) {
            if (!is_to_be_online(*part) && !is_to_be_offline(*part)) continue;
            region.serials.push_back(part->serial);
            region.size += part->size;
            region.force = region.force || part->forced;
            if (part->drain_deadline) region.drain_deadline = part->drain_deadline;
        }
        result.push_back(std::move(region));
    }
    return result;
}

bool is_unused(const Composition& c, std::uint32_t region) {
    return !c.adopted && std::ranges::none_of(c.parts, [&](const Part& part) {
        return part.region == region && !part.boot_id.empty();
    });
}

}  // namespace memtide::fm

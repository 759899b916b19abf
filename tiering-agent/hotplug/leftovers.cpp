#include "tiering-agent/hotplug/leftovers.h"

#include <string>

#include <fmt/format.h>

namespace memtide::agent {
namespace {

constexpr std::string_view kLeftover = "leftover-";

RegionId leftover_id(const RegionRecord& record) {
    return {CompositionId{std::string(kLeftover) + record.region}, 0};
}

// What is to be done about a record that no composition with a live memdev stands behind.
Action leftover_action(const RegionRecord& record, const Region* region) {
    Action action;
    action.id = leftover_id(record);
    action.serials = record.serials;
    action.region = record.region;
    action.range = record.range;
    action.blocks = indexes_where(record.blocks, is_not_offline);
    if (!action.blocks.empty()) {
        action.kind = ActionKind::kOfflineBlocks;
        action.force = true;  // the contents are lost already: nothing to be gentle about
    } else if (region != nullptr) {
        action.kind = ActionKind::kDestroyRegion;
        action.window = region->window;
    } else {
        action.kind = ActionKind::kForgetRegion;
    }
    return action;
}

}  // namespace

bool is_leftover(const RegionId& id) { return id.composition.value.starts_with(kLeftover); }

const Region* find_region(const Seen& seen, std::string_view name) {
    const auto it = std::ranges::find(seen.regions, name, &Region::name);
    return it == seen.regions.end() ? nullptr : &*it;
}

bool has_no_live_memdev(const Region& region) {
    return std::ranges::all_of(region.targets, [](const Target& target) { return target.memdev.empty(); });
}

void plan_leftovers(const Desired& desired, const Seen& seen, const Notes& notes, Plan& plan) {
    const auto is_alive = [&](SerialNumber serial) {
        return std::ranges::find(seen.memdevs, serial, &Memdev::serial) != seen.memdevs.end();
    };
    const auto is_wanted = [&](SerialNumber serial) {
        return std::ranges::any_of(desired.regions, [&](const DesiredRegion& region) {
            return std::ranges::find(region.serials, serial) != region.serials.end();
        });
    };
    for (const RegionRecord& record : seen.records) {
        const bool alive = std::ranges::any_of(record.serials, is_alive);
        if (alive && std::ranges::any_of(record.serials, is_wanted)) continue;
        const Region* region = find_region(seen, record.region);
        if (region != nullptr && !has_no_live_memdev(*region)) {
            if (alive)
                plan.warnings.push_back(
                    {"unlisted-region",
                     fmt::format("{} was made by this agent, but no composition asks for it any "
                                 "more; it is left as it is",
                                 record.region)});
            continue;
        }
        const Action& action = plan.cleanups.emplace_back(leftover_action(record, region));
        if (notes.contains(action.id) && !action.blocks.empty())
            plan.warnings.push_back(
                {"device-vanished",
                 fmt::format(
                     "{} belonged to the memdev with serial {} that went away, and cannot be taken offline; "
                     "they stay until the host restarts",
                     block_names(action.blocks), format_serial(record.serials.front()))});
    }
}

}  // namespace memtide::agent

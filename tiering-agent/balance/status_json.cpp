#include "tiering-agent/balance/status_json.h"

#include <cstring>

#include <boost/json/array.hpp>

namespace memtide::agent {
namespace {

std::uint64_t bytes(std::uint64_t pages) { return size_of_pages(pages).value; }

double seconds(std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); }

boost::json::object far_of_target(const FarStatus::OfTarget& target, const FarRoom& room) {
    boost::json::object kept;
    for (const auto& [error, pages] : target.kept_pages) kept[::strerrorname_np(error)] = bytes(pages);
    return {{"state", target.state},
            {"why", target.why},
            {"cold", bytes(target.cold_pages)},
            {"out", bytes(target.out_pages)},
            {"saved", static_cast<std::uint64_t>(double(bytes(target.out_pages)) * room.gain())},
            {"sent", bytes(target.sent_pages)},
            {"came_back", bytes(target.returned_pages)},
            {"came_back_soon", bytes(target.returned_soon_pages)},
            {"kept", std::move(kept)}};
}

boost::json::object far_tier(const FarStatus& far) {
    return {{"tier", far.tier},
            {"unavailable", far.unavailable},
            {"capacity", far.room.capacity.value},
            {"free", far.room.free.value},
            {"processor_seconds", seconds(far.processor_time)},
            {"heat_bytes", far.memory_bytes}};
}

}  // namespace

boost::json::object to_json(const BalanceStatus& status) {
    boost::json::array tiers;
    for (const Tier& tier : status.tiers)
        tiers.push_back({{"name", tier.name},
                         {"nodes", boost::json::array(tier.nodes.begin(), tier.nodes.end())},
                         {"capacity", tier.capacity.value},
                         {"free", tier.free.value},
                         {"why", tier.why}});
    boost::json::array targets;
    for (std::size_t number = 0; number < status.targets.size(); ++number) {
        const BalanceStatus::OfTarget& target = status.targets[number];
        boost::json::object in_tiers;
        for (std::size_t i = 0; i < target.pages_by_tier.size() && i < status.tiers.size(); ++i)
            in_tiers[status.tiers[i].name] = bytes(target.pages_by_tier[i]);
        targets.push_back({{"name", target.name},
                           {"processes", target.processes},
                           {"bytes", std::move(in_tiers)},
                           {"promoted", bytes(target.promoted_pages)},
                           {"demoted", bytes(target.demoted_pages)},
                           {"cgroups", boost::json::array(target.cgroups.begin(), target.cgroups.end())},
                           {"huge_pages", {{"split", target.split_huge}, {"made_whole", target.joined_huge}}},
                           {"pace", target.pace},
                           {"pressed", target.is_pressure},
                           {"hinted",
                            {{"hot", bytes(target.hot_pages)},
                             {"cold", bytes(target.cold_pages)},
                             {"pin", bytes(target.pinned_pages)}}}});
        if (const auto far = status.far.targets.find(number); far != status.far.targets.end())
            targets.back().as_object()["far"] = far_of_target(far->second, status.far.room);
    }
    boost::json::object failed;
    for (const auto& [error, pages] : status.failed_pages) failed[::strerrorname_np(error)] = bytes(pages);
    boost::json::object object{{"mode", to_string(status.mode)},
                               {"tracker", status.tracker},
                               {"notes", boost::json::array(status.notes.begin(), status.notes.end())},
                               {"tiers", std::move(tiers)},
                               {"targets", std::move(targets)},
                               {"rounds", status.rounds},
                               {"hit", status.hit},
                               {"even", status.is_even},
                               {"fast_ns", status.fast_ns},
                               {"slow_ns", status.slow_ns},
                               {"most_fast", status.most_fast},
                               {"move_threads", status.move_threads},
                               {"promoted", bytes(status.promoted_pages)},
                               {"demoted", bytes(status.demoted_pages)},
                               {"wasted", bytes(status.wasted_pages)},
                               {"failed", std::move(failed)},
                               {"window_ms", status.window.count()},
                               {"rest_ms", status.rest.count()},
                               {"processor_seconds", seconds(status.processor_time)},
                               {"heat_bytes", status.heat_bytes}};
    if (!status.far.tier.empty()) object["far"] = far_tier(status.far);
    return object;
}

}  // namespace memtide::agent

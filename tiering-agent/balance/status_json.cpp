#include "tiering-agent/balance/status_json.h"

#include <cstring>

#include <boost/json/array.hpp>

namespace memtide::agent {
namespace {

std::uint64_t bytes(std::uint64_t pages) { return pages << kPageShift; }

double seconds(std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); }

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
    for (const auto& target : status.targets) {
        boost::json::object in_tiers;
        for (std::size_t i = 0; i < target.pages_by_tier.size() && i < status.tiers.size(); ++i)
            in_tiers[status.tiers[i].name] = bytes(target.pages_by_tier[i]);
        targets.push_back({{"name", target.name},
                           {"processes", target.processes},
                           {"bytes", std::move(in_tiers)},
                           {"promoted", bytes(target.promoted_pages)},
                           {"demoted", bytes(target.demoted_pages)},
                           {"cgroups", boost::json::array(target.cgroups.begin(), target.cgroups.end())},
                           {"hinted",
                            {{"hot", bytes(target.hot_pages)},
                             {"cold", bytes(target.cold_pages)},
                             {"pin", bytes(target.pinned_pages)}}}});
    }
    boost::json::object failed;
    for (const auto& [error, pages] : status.failed_pages) failed[::strerrorname_np(error)] = bytes(pages);
    return {{"mode", to_string(status.mode)},
            {"tracker", status.tracker},
            {"notes", boost::json::array(status.notes.begin(), status.notes.end())},
            {"tiers", std::move(tiers)},
            {"targets", std::move(targets)},
            {"rounds", status.rounds},
            {"hit", status.hit},
            {"even", status.is_even},
            {"promoted", bytes(status.promoted_pages)},
            {"demoted", bytes(status.demoted_pages)},
            {"wasted", bytes(status.wasted_pages)},
            {"failed", std::move(failed)},
            {"window_ms", status.window.count()},
            {"rest_ms", status.rest.count()},
            {"processor_seconds", seconds(status.processor_time)},
            {"heat_bytes", status.heat_bytes}};
}

}  // namespace memtide::agent

#include "tiering-agent/app/agent_metrics.h"

#include <chrono>
#include <cstring>

namespace memtide::agent {
namespace {

double bytes(std::uint64_t pages) { return static_cast<double>(size_of_pages(pages).value); }

void set_far_metrics(metrics::Registry& registry, const BalanceStatus& status) {
    const FarStatus& far = status.far;
    if (far.tier.empty()) return;
    registry.gauge("memtide_far_capacity_bytes", "Room of the far tier", {{"tier", far.tier}})
        .set(static_cast<double>(far.room.capacity.value));
    registry.gauge("memtide_far_free_bytes", "Room of the far tier that nobody uses", {{"tier", far.tier}})
        .set(static_cast<double>(far.room.free.value));
    registry.counted("memtide_far_processor_seconds_total", "Processor time of the far tier's part")
        .set(std::chrono::duration<double>(far.processor_time).count());
    for (const auto& [number, target] : far.targets) {
        if (number >= status.targets.size()) continue;
        const metrics::Labels labels{{"target", status.targets[number].name}};
        registry.gauge("memtide_far_cold_bytes", "Memory of a target that may go to the far tier", labels)
            .set(bytes(target.cold_pages));
        registry.gauge("memtide_far_bytes", "Memory of a target in the far tier", labels)
            .set(bytes(target.out_pages));
        registry.counted("memtide_far_sent_bytes_total", "Sent to the far tier", labels)
            .set(bytes(target.sent_pages));
        registry.counted("memtide_far_returned_bytes_total", "Came back from the far tier", labels)
            .set(bytes(target.returned_pages));
        registry
            .counted("memtide_far_returned_soon_bytes_total",
                     "Came back sooner than it had been untouched before", labels)
            .set(bytes(target.returned_soon_pages));
        for (const auto& [error, pages] : target.kept_pages)
            registry
                .counted("memtide_far_kept_bytes_total", "What the far tier did not take, by why not",
                         {{"target", status.targets[number].name}, {"reason", ::strerrorname_np(error)}})
                .set(bytes(pages));
    }
}

}  // namespace

void set_metrics(metrics::Registry& registry, const BalanceStatus& status) {
    for (const Tier& tier : status.tiers) {
        registry.gauge("memtide_tier_capacity_bytes", "Memory of a tier", {{"tier", tier.name}})
            .set(static_cast<double>(tier.capacity.value));
        registry.gauge("memtide_tier_free_bytes", "Memory of a tier that nobody uses", {{"tier", tier.name}})
            .set(static_cast<double>(tier.free.value));
    }
    for (const auto& target : status.targets) {
        registry
            .gauge("memtide_target_processes", "Processes of a target that are watched",
                   {{"target", target.name}})
            .set(static_cast<double>(target.processes));
        for (std::size_t i = 0; i < target.pages_by_tier.size() && i < status.tiers.size(); ++i)
            registry
                .gauge("memtide_target_bytes", "Memory of a target in a tier",
                       {{"target", target.name}, {"tier", status.tiers[i].name}})
                .set(bytes(target.pages_by_tier[i]));
        registry
            .counted("memtide_target_promoted_bytes_total", "Moved to a faster tier",
                     {{"target", target.name}})
            .set(bytes(target.promoted_pages));
        registry
            .counted("memtide_target_demoted_bytes_total", "Moved to a slower tier",
                     {{"target", target.name}})
            .set(bytes(target.demoted_pages));
        registry
            .gauge("memtide_target_pace_ratio", "Share of the full pace at which pages of a target move",
                   {{"target", target.name}})
            .set(target.pace);
        for (const auto& [hint, hinted] :
             {std::pair("hot", target.hot_pages), std::pair("cold", target.cold_pages),
              std::pair("pin", target.pinned_pages)})
            registry
                .gauge("memtide_target_hinted_bytes", "Memory of which processes of a target say so",
                       {{"target", target.name}, {"hint", hint}})
                .set(bytes(hinted));
        registry
            .counted("memtide_target_split_huge_pages_total", "Huge pages that were split",
                     {{"target", target.name}})
            .set(double(target.split_huge));
        registry
            .counted("memtide_target_joined_huge_pages_total", "Of these, made whole again",
                     {{"target", target.name}})
            .set(double(target.joined_huge));
    }
    registry.counted("memtide_tiering_wasted_bytes_total", "Moves that undid another within a minute")
        .set(bytes(status.wasted_pages));
    for (const auto& [error, pages] : status.failed_pages)
        registry
            .counted("memtide_tiering_failed_bytes_total", "What the kernel did not move, by why not",
                     {{"reason", ::strerrorname_np(error)}})
            .set(bytes(pages));
    registry.gauge("memtide_tiering_hit_ratio", "Share of touches that fall on the fastest tier, estimated")
        .set(status.hit);
    registry
        .gauge("memtide_tiering_most_fast_ratio",
               "Share of touches that should fall on the fastest tier at most; 1: it is not the bottleneck")
        .set(status.most_fast);
    if (status.tiers.size() > 1)
        for (const auto& [tier, latency] : {std::pair(status.tiers[0].name, status.fast_ns),
                                            std::pair(status.tiers[1].name, status.slow_ns)})
            if (latency > 0)
                registry
                    .gauge("memtide_tier_latency_seconds", "Of a load from a tier, as the agent measures it",
                           {{"tier", tier}})
                    .set(latency * 1e-9);
    registry.counted("memtide_tiering_rounds_total", "Windows looked at")
        .set(static_cast<double>(status.rounds));
    registry
        .counted("memtide_tiering_processor_seconds_total", "Processor time of looking, planning and moving")
        .set(std::chrono::duration<double>(status.processor_time).count());
    registry.gauge("memtide_tiering_heat_bytes", "Memory that the heat of pages takes")
        .set(static_cast<double>(status.heat_bytes));
    set_far_metrics(registry, status);
}

}  // namespace memtide::agent

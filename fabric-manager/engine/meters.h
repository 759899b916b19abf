#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "common/metrics/registry.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/model/fragmentation.h"

namespace memtide::fm {

// What the engine counts.
struct Core::Meters {
    explicit Meters(metrics::Registry& r)
        : created(r.counter("memtide_fm_compositions_created_total", "Compositions accepted")),
          adopted(r.counter("memtide_fm_compositions_adopted_total", "Bindings found and adopted")),
          released(r.counter("memtide_fm_compositions_released_total", "Compositions that ended Released")),
          failed(r.counter("memtide_fm_compositions_failed_total", "Compositions that ended Failed")),
          retries(r.counter("memtide_fm_step_retries_total", "Steps that failed and were tried again")),
          not_erased(r.counter("memtide_fm_lds_not_erased_total",
                               "LDs that a host found not erased although their device had said so")),
          journal_errors(r.counter("memtide_fm_journal_errors_total", "Journal writes that failed")),
          state_damages(r.counter("memtide_fm_state_damages_total",
                                  "Snapshots and logs found damaged while the state was good")),
          active(r.gauge("memtide_fm_compositions_active", "Compositions that have not ended")),
          capacity(r.gauge("memtide_fm_pool_capacity_bytes", "Memory of all devices")),
          free(r.gauge("memtide_fm_pool_free_bytes", "Memory that can be given out")),
          composed(r.gauge("memtide_fm_pool_composed_bytes", "Memory given to hosts")),
          quarantined(r.gauge("memtide_fm_pool_quarantined_bytes", "Memory that could not be erased")),
          stranded(r.gauge("memtide_fm_pool_stranded_bytes", "Free memory that no request can get now")),
          largest_ld(r.gauge("memtide_fm_pool_largest_ld_bytes", "The largest LD that could be had now")),
          largest_composition(r.gauge("memtide_fm_pool_largest_composition_bytes",
                                      "The largest composition that could be had now at any host")),
          fragmentation(r.gauge("memtide_fm_pool_fragmentation_ratio",
                                "1 - largest composition / what it could be with the same free memory")),
          journal(r.histogram("memtide_fm_journal_seconds", "Time until a journal entry is on the disk",
                              metrics::duration_bounds())),
          to_online(r.histogram("memtide_fm_compose_seconds", "From the request to Online",
                                metrics::duration_bounds())),
          overhead(r.histogram("memtide_fm_compose_overhead_seconds", "The manager's own share of it",
                               metrics::duration_bounds())) {
        for (const char* name : {"place", "erase-before-bind", "allocate", "bind", "online", "drain",
                                 "unbind", "erase", "exchange"})
            steps[name] = &r.histogram("memtide_fm_step_duration_seconds",
                                       "Time of the steps of compositions, from begin to end",
                                       metrics::duration_bounds(), {{"step", name}});
    }

    // By switch, of which there are as many as the configuration names.
    void note(metrics::Registry& registry, const Fragmentation& found) const {
        largest_ld.set(static_cast<double>(found.total.largest_ld.value));
        largest_composition.set(static_cast<double>(found.total.largest_composition.value));
        fragmentation.set(found.total.fragmentation());
        for (const auto& [id, scatter] : found.switches) {
            const metrics::Labels labels{{"switch", id.value}};
            registry
                .gauge("memtide_fm_switch_free_bytes", "Memory behind the switch that can be given out",
                       labels)
                .set(static_cast<double>(scatter.free.value));
            registry
                .gauge("memtide_fm_switch_largest_composition_bytes",
                       "The largest composition that could be had behind the switch now", labels)
                .set(static_cast<double>(scatter.largest_composition.value));
            registry
                .gauge("memtide_fm_switch_fragmentation_ratio",
                       "1 - largest composition / what it could be with the same free memory", labels)
                .set(scatter.fragmentation());
        }
    }

    // Observes each step of `now` that was not over in `before`.
    void note_steps(const Composition& before, const Composition& now) const {
        for (std::size_t i = 0; i < now.steps.size(); ++i) {
            const Step& step = now.steps[i];
            if (!step.ended || (i < before.steps.size() && before.steps[i].ended)) continue;
            const auto histogram = steps.find(step.name);
            if (histogram == steps.end()) continue;
            histogram->second->observe(std::max(0.0, to_ms(*step.ended - step.started) / 1000));
        }
    }

    metrics::Counter &created, &adopted, &released, &failed, &retries, &not_erased, &journal_errors,
        &state_damages;
    metrics::Gauge &active, &capacity, &free, &composed, &quarantined, &stranded, &largest_ld,
        &largest_composition, &fragmentation;
    metrics::Histogram &journal, &to_online, &overhead;
    std::map<std::string, metrics::Histogram*, std::less<>> steps;  // by name; others are not measured
};

}  // namespace memtide::fm

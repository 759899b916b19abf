#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "common/metrics/registry.h"
#include "fabric-manager/engine/core.h"

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
          active(r.gauge("memtide_fm_compositions_active", "Compositions that have not ended")),
          capacity(r.gauge("memtide_fm_pool_capacity_bytes", "Memory of all devices")),
          free(r.gauge("memtide_fm_pool_free_bytes", "Memory that can be given out")),
          composed(r.gauge("memtide_fm_pool_composed_bytes", "Memory given to hosts")),
          quarantined(r.gauge("memtide_fm_pool_quarantined_bytes", "Memory that could not be erased")),
          journal(r.histogram("memtide_fm_journal_seconds", "Time until a journal entry is on the disk",
                              metrics::duration_bounds())),
          to_online(r.histogram("memtide_fm_compose_seconds", "From the request to Online",
                                metrics::duration_bounds())),
          overhead(r.histogram("memtide_fm_compose_overhead_seconds", "The manager's own share of it",
                               metrics::duration_bounds())) {
        for (const char* name :
             {"place", "erase-before-bind", "allocate", "bind", "online", "drain", "unbind", "erase"})
            steps[name] = &r.histogram("memtide_fm_step_duration_seconds",
                                       "Time of the steps of compositions, from begin to end",
                                       metrics::duration_bounds(), {{"step", name}});
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

    metrics::Counter &created, &adopted, &released, &failed, &retries, &not_erased, &journal_errors;
    metrics::Gauge &active, &capacity, &free, &composed, &quarantined;
    metrics::Histogram &journal, &to_online, &overhead;
    std::map<std::string, metrics::Histogram*, std::less<>> steps;  // by name; others are not measured
};

}  // namespace memtide::fm

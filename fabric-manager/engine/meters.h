#pragma once

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
                               metrics::duration_bounds())) {}

    metrics::Counter &created, &adopted, &released, &failed, &retries, &journal_errors;
    metrics::Gauge &active, &capacity, &free, &composed, &quarantined;
    metrics::Histogram &journal, &to_online, &overhead;
};

}  // namespace memtide::fm

#include "fabric-manager/fmapi/meter.h"

#include <map>
#include <memory>

namespace memtide::fm {

RoundTripObserver round_trip_meter(metrics::Registry& registry, const SwitchId& switch_id) {
    const auto counter = [&](const char* result) {
        return &registry.counter("memtide_fmapi_commands_total",
                                 "FM API commands sent, by what became of them.",
                                 {{"switch", switch_id.value}, {"result", result}});
    };
    auto histograms = std::make_shared<std::map<fmapi::Opcode, metrics::Histogram*>>();
    return [&registry, histograms, answered_ones = counter("answered"), lost_ones = counter("lost")](
               fmapi::Opcode opcode, std::chrono::nanoseconds took, bool answered) {
        (answered ? answered_ones : lost_ones)->add();
        metrics::Histogram*& histogram = (*histograms)[opcode];
        if (histogram == nullptr)
            histogram = &registry.histogram("memtide_fmapi_round_trip_duration_seconds",
                                            "From sending an FM API command to its answer, or giving it up.",
                                            metrics::duration_bounds(), {{"command", to_string(opcode)}});
        histogram->observe(std::chrono::duration<double>(took).count());
    };
}

}  // namespace memtide::fm

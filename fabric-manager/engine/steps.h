#pragma once

#include <string_view>

#include "fabric-manager/model/composition.h"

// The list of steps in a composition.
namespace memtide::fm {

// Adds the step unless it is already under way (a repetition after a failure or a restart).
inline void begin_step(Composition& c, std::uint32_t part, std::string_view name, Time now) {
    for (const Step& step : c.steps)
        if (step.part == part && step.name == name && !step.ended) return;
    c.steps.push_back({std::string(name), part, now, std::nullopt, {}});
}

inline void end_step(Composition& c, std::uint32_t part, std::string_view name, Time now,
                     std::string detail = {}) {
    for (Step& step : c.steps) {
        if (step.part != part || step.name != name || step.ended) continue;
        step.ended = now;
        step.detail = std::move(detail);
    }
}

}  // namespace memtide::fm

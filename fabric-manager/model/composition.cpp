#include "fabric-manager/model/composition.h"

#include <array>
#include <utility>

#include "fabric-manager/model/agent.h"

namespace memtide::fm {

namespace {

using enum CompositionState;

constexpr std::array<std::pair<CompositionState, std::string_view>, 9> kStateNames{{
    {kPending, "Pending"},
    {kBinding, "Binding"},
    {kOnlining, "Onlining"},
    {kOnline, "Online"},
    {kDraining, "Draining"},
    {kUnbinding, "Unbinding"},
    {kErasing, "Erasing"},
    {kReleased, "Released"},
    {kFailed, "Failed"},
}};

constexpr std::array<std::pair<ObservedState, std::string_view>, 6> kObservedNames{{
    {ObservedState::kAbsent, "absent"},
    {ObservedState::kFound, "found"},
    {ObservedState::kOnline, "online"},
    {ObservedState::kDraining, "draining"},
    {ObservedState::kOffline, "offline"},
    {ObservedState::kFailed, "failed"},
}};

template <typename Names, typename Value>
std::string_view name_of(const Names& names, Value value) {
    for (const auto& [candidate, name] : names)
        if (candidate == value) return name;
    return "?";
}

template <typename Value, typename Names>
std::optional<Value> value_of(const Names& names, std::string_view text) {
    for (const auto& [value, name] : names)
        if (name == text) return value;
    return std::nullopt;
}

}  // namespace

std::string_view to_string(CompositionState state) { return name_of(kStateNames, state); }
std::optional<CompositionState> parse_state(std::string_view text) {
    return value_of<CompositionState>(kStateNames, text);
}
std::string_view to_string(ObservedState state) { return name_of(kObservedNames, state); }
std::optional<ObservedState> parse_observed_state(std::string_view text) {
    return value_of<ObservedState>(kObservedNames, text);
}

bool is_end(CompositionState state) { return state == kReleased || state == kFailed; }

bool may_follow(CompositionState from, CompositionState to) {
    switch (from) {
        case kPending:  // released or refused before the switch was asked to bind
            return to == kBinding || to == kReleased || to == kFailed;
        case kBinding:
            return to == kOnlining || to == kDraining || to == kUnbinding || to == kReleased || to == kFailed;
        case kOnlining:
            return to == kOnline || to == kDraining || to == kFailed;
        case kOnline:  // back to Onlining when the host rebooted
            return to == kOnlining || to == kDraining || to == kFailed;
        case kDraining:  // straight to Erasing when something else has unbound it
            return to == kUnbinding || to == kErasing;
        case kUnbinding:
            return to == kErasing;
        case kErasing:
            return to == kReleased || to == kFailed;
        case kReleased:
        case kFailed:
            return false;
    }
    return false;
}

}  // namespace memtide::fm

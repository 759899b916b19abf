#include "fabric-manager/model/composition.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fabric-manager/model/agent.h"

namespace memtide::fm {

namespace {

using enum CompositionState;

constexpr std::array<std::pair<CompositionState, std::string_view>, 11> kStateNames{{
    {kPending, "Pending"},
    {kBinding, "Binding"},
    {kOnlining, "Onlining"},
    {kOnline, "Online"},
    {kResizing, "Resizing"},
    {kDegraded, "Degraded"},
    {kDraining, "Draining"},
    {kUnbinding, "Unbinding"},
    {kErasing, "Erasing"},
    {kReleased, "Released"},
    {kFailed, "Failed"},
}};

constexpr std::array<std::pair<PlacementKind, std::string_view>, 3> kPlacementNames{{
    {PlacementKind::kPack, "pack"},
    {PlacementKind::kSpread, "spread"},
    {PlacementKind::kBandwidth, "bandwidth"},
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
std::string_view to_string(PlacementKind kind) { return name_of(kPlacementNames, kind); }
std::optional<PlacementKind> parse_placement_kind(std::string_view text) {
    return value_of<PlacementKind>(kPlacementNames, text);
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
        case kResizing:
        case kDegraded:
        case kReleased:
        case kFailed:
            return false;
    }
    return false;
}

const Part* Composition::part(std::uint32_t number) const {
    const auto found = std::ranges::find(parts, number, &Part::number);
    return found == parts.end() ? nullptr : &*found;
}
Part* Composition::part(std::uint32_t number) { return const_cast<Part*>(std::as_const(*this).part(number)); }

bool is_lasting(const Part& part) { return !is_end(part.state) && !part.release_requested && !part.reason; }
bool is_new(const Part& part) { return part.boot_id.empty(); }
bool is_leaving(const Composition& c, const Part& part) {
    return c.exchange && std::ranges::find(c.exchange->leaving, part.number) != c.exchange->leaving.end();
}

namespace {

Bytes sum_of(const Composition& composition, bool (*counts)(const Part&)) {
    Bytes sum;
    for (const Part& part : composition.parts)
        if (counts(part)) sum += part.size;
    return sum;
}

bool is_live(const Part& part) { return !is_end(part.state); }

// The state of the part that is furthest from its end; nullopt when no part counts.
std::optional<CompositionState> earliest(const Composition& composition, bool (*counts)(const Part&)) {
    std::optional<CompositionState> result;
    for (const Part& part : composition.parts)
        if (counts(part) && (!result || part.state < *result)) result = part.state;
    return result;
}

// Neither as it is to stay, nor on its way back to that after a reboot of its host.
bool is_changing(const Part& part) {
    if (!is_live(part)) return false;
    return !is_lasting(part) || (part.state != kOnline && (part.state != kOnlining || is_new(part)));
}

}  // namespace

std::string waiting_for(const Composition& composition) {
    for (const Part& part : composition.parts)
        if (!part.waiting_for.empty()) return part.waiting_for;
    return {};
}

Bytes lasting_size(const Composition& composition) { return sum_of(composition, &is_lasting); }
Bytes held_size(const Composition& composition) { return sum_of(composition, &is_live); }

CompositionState state_of(const Composition& c) {
    const std::optional<CompositionState> live = earliest(c, &is_live);
    const bool stays = !c.release_requested && !c.failed;
    if (!live) {
        if (!stays || !c.was_online) return c.failed ? kFailed : kReleased;
        // One that waits for a replacement of all it had is not over.
        return c.placement.reprovide ? kDegraded : kFailed;
    }
    // What was still coming to one that its host uses goes back as well, however far it is.
    if (!stays) return c.was_online ? std::max(*live, kDraining) : *live;
    const std::optional<CompositionState> lasting = earliest(c, &is_lasting);
    if (!c.was_online) return lasting.value_or(*live);
    // From its first Online on it is resized, healed, or as it should be, however far its parts are.
    if (c.exchange || std::ranges::any_of(c.parts, is_changing)) return kResizing;
    if (*lasting != kOnline) return kOnlining;
    return lasting_size(c) < c.size ? kDegraded : kOnline;
}

}  // namespace memtide::fm

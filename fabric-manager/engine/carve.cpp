// Carving: dividing the memory of a device among its LDs anew, and what becomes of a part whose device
// refuses. How its memory is cut into LDs is the device's affair, and nothing tells where they are: that what
// is free is not in one piece shows only when it is asked for.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/retrying.h"
#include "fabric-manager/engine/steps.h"
#include "fabric-manager/placement/ld_fit.h"

namespace memtide::fm {

namespace {

// The LDs that the carve takes memory from, as words; empty when there are none.
std::string others_of(const Part& part) {
    std::vector<std::uint16_t> others;
    for (const LdSize& one : part.carve->after)
        if (one.ld != part.memory.ld) others.push_back(one.ld.value);
    return fmt::format("{}", fmt::join(others, ", "));
}

std::vector<DeviceId> devices_of_mates(const Composition& c, const Part& part) {
    std::vector<DeviceId> devices;
    for (const Part& mate : c.parts)
        if (mate.region == part.region && mate.number != part.number && is_lasting(mate))
            devices.push_back(mate.memory.device);
    return devices;
}

}  // namespace

Async<Core::Progress> Core::allocate_step(PartRef ref, ActionKind kind) {
    const bool undo = kind == ActionKind::kUndoAllocate;
    const AsyncMutex::Lock turn = co_await turn_at_switch(ref);
    if (stopping_ || next(ref).kind != kind) co_return Progress::kAgain;
    const bool possible = !undo || is_untouched(ref.part());
    if (possible) {
        Change change = [this](Draft& draft) {
            begin_step(draft.c, draft.number, "allocate", now());
            return true;
        };
        const Progress journaled = co_await advance(ref, std::move(change));
        if (journaled != Progress::kAgain) co_return journaled;
        // Memory of every LD that is not bound may move: none of it counts as erased any more.
        inventory_.forget_clean(ref.part().memory.device);
        ++carvings_[ref.part().memory.device];
    }
    Result<SerialNumber> serial{SerialNumber{}};
    if (possible) {
        std::vector<LdSize> sizes = undo ? ref.part().carve->before : ref.part().carve->after;
        point("effect", "allocate");
        serial = co_await set_sizes(ref, std::move(sizes));
        point("effected", "allocate");
    }
    if (!serial) {
        const Error error = serial.error();
        const bool refused = error.code == ErrorCode::kExhausted;
        if (!refused && !is_final(error, ref.job().failures + 1)) co_return refused_for_now(ref, error);
        if (!undo) co_return co_await carve_refused(ref, error);
    }
    ref.job().failures = 0;
    Change change = [this, undo, possible, serial](Draft& draft) {
        Part& part = draft.part();
        end_step(draft.c, part.number, "allocate", now(), undo ? "undone" : "");
        if (undo) {
            if (possible && serial) draft.c.undone.emplace_back("allocate");
            part.carve.reset();
        } else {
            part.carve->done = true;
            if (serial->value != 0) part.serial = *serial;
        }
        return true;
    };
    co_return co_await advance(ref, std::move(change));
}

// Whether the LDs of its carve are still as the carve left them and nobody else's, so that it can be undone.
bool Core::is_untouched(const Part& part) const {
    return std::ranges::all_of(part.carve->after, [&](const LdSize& one) {
        const LogicalDevice* ld = inventory_.ld({part.memory.device, one.ld});
        const LogicalDevice* own = inventory_.ld(part.memory);
        return ld != nullptr && ld->size == one.size && !ld->bound_at &&
               (!ld->owner || ld->owner == own->owner);
    });
}

// Once more with all that is free of the device, where that is more; else the part goes elsewhere. Claims
// come before the journal entry, as with every placement.
Async<Core::Progress> Core::carve_refused(PartRef ref, Error error) {
    std::vector<PartId> claimed;
    bool changed = false;
    Change change = [&](Draft& draft) {
        const Part& part = draft.part();
        if (part.state != CompositionState::kPending || part.reason || part.release_requested) return false;
        changed = true;
        end_step(draft.c, part.number, "allocate", now(), "refused: " + error.message);
        const bool wider = error.code == ErrorCode::kExhausted && carve_wider(draft, error);
        if (!wider) claimed = carve_elsewhere(draft, error);
        return true;
    };
    const Result<> durable = co_await journal(ref.entry, std::move(change), ref.number);
    if (durable) {
        ref.job().failures = 0;
        if (!claimed.empty()) kick(ref.entry);
        co_return Progress::kAgain;
    }
    for (const PartId& id : claimed) inventory_.release(id);
    if (changed) (void)inventory_.claim(ref.entry->c, ref.part());
    if (stopping_) co_return Progress::kIdle;
    trouble(ref, durable.error());
    co_return Progress::kRetry;
}

// False when the carve takes all already that is free of the device.
bool Core::carve_wider(Draft& draft, const Error& error) {
    Part part = draft.part();
    const Device* device = inventory_.device(part.memory.device);
    std::optional<Carve> wider = device == nullptr ? std::nullopt : widen(*device, part);
    if (!wider) return false;
    part.carve = std::move(wider);
    if (!inventory_.claim(draft.c, part)) return false;
    draft.part() = part;
    Event event = event_about(draft, part, "composition.retry");
    event.code = "allocate-refused";
    event.detail =
        fmt::format("{}; tried again with LDs {} of {} set to 0, so that what is free is in one piece",
                    error.message, others_of(part), part.memory.device.value);
    draft.events.push_back(std::move(event));
    return true;
}

// What its device refused is remembered, so that placement does not come back to it. What the part had is
// free for what takes its place, and for nobody else until that is durable. The parts claimed; none when
// nothing fits: then the composition fails.
std::vector<PartId> Core::carve_elsewhere(Draft& draft, const Error& error) {
    Part& part = draft.part();
    const std::string others = others_of(part);
    part.reason = Reason{
        "allocate-refused",
        fmt::format("device {} refused to make LD {} {} large{} ({})", part.memory.device.value,
                    part.memory.ld.value, format_bytes(part.size),
                    others.empty() ? "" : fmt::format(", also with LDs {} set to 0", others), error.message)};
    part.state = CompositionState::kFailed;
    const Part failing = part;
    inventory_.release({draft.c.id, failing.number});
    inventory_.note_refused_carve(failing.memory, failing.size);
    std::string refused;
    Substitute substitute = replace_in_region(draft, failing);
    if (substitute.parts.empty()) substitute = replace_region(draft, failing, refused);
    inventory_.keep(draft.c, failing);
    if (substitute.parts.empty()) {
        draft.part().reason->detail += "; nothing else fits: " + refused;
        note_failure(draft);
        draft.c.undone.emplace_back("reservation");
        return {};
    }
    Event event = event_about(draft, failing, "composition.reprovided");
    event.code = failing.reason->code;
    event.detail = fmt::format("{}; it gets {} instead", failing.reason->detail, substitute.where);
    draft.events.push_back(std::move(event));
    return std::move(substitute.parts);
}

// One part in the place of one that is interleaved with others, which stay.
Core::Substitute Core::replace_in_region(Draft& draft, const Part& failing) {
    Composition& c = draft.c;
    PlacementRequest request = request_for_more(c, failing.size);
    request.without = devices_of_mates(c, failing);
    if (request.without.empty()) return {};
    request.only_at = failing.where.switch_id;
    request.policy.kind = PlacementKind::kPack;
    request.policy.ways = 1;
    request.policy.max_devices = 1;
    Outcome<Plan> plan = place(inventory_, request);
    if (!plan) return {};
    Substitute substitute = add_substitute(c, *std::move(plan), failing.replacement);
    for (const PartId& id : substitute.parts) c.part(id.number)->region = failing.region;
    return substitute;
}

// The part elsewhere, with all of its region. `refused` says why not.
Core::Substitute Core::replace_region(Draft& draft, const Part& failing, std::string& refused) {
    Composition c = draft.c;
    Bytes missing = failing.size;
    for (Part& mate : c.parts) {
        if (mate.region != failing.region || !is_lasting(mate)) continue;
        missing += mate.size;
        give_back(c, mate);
    }
    Outcome<Plan> plan = place(inventory_, request_for_more(c, missing));
    if (!plan) {
        refused = plan.error().detail;
        return {};
    }
    Substitute substitute = add_substitute(c, *std::move(plan), failing.replacement);
    if (substitute.parts.empty())
        refused = "what would fit is being taken by others";
    else
        draft.c = std::move(c);
    return substitute;
}

}  // namespace memtide::fm

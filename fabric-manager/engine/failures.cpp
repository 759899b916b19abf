// What a part that fails means for its composition.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/retrying.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

Event event_about(const Draft& draft, const Part& part, std::string type) {
    Event event;
    event.type = std::move(type);
    event.composition = draft.c.id;
    event.host = draft.c.host;
    event.switch_id = part.where.switch_id;
    event.device = part.memory.device;
    return event;
}

// Asks for the part back; a part whose host has it is drained first.
void Core::give_back(Composition& c, Part& part) const {
    part.release_requested = true;
    if (part.state == CompositionState::kOnline || part.state == CompositionState::kOnlining)
        begin_drain(c, part);
}

// The part has just got a reason to fail. Before all of the composition was online once, and when it is
// released, one failure is everybody's; later it keeps what is left. An interleaved region goes as a whole.
void Core::note_failure(Draft& draft) const {
    Composition& c = draft.c;
    const Part failing = draft.part();
    const bool growth = is_new(failing) && !failing.replacement;
    if (c.release_requested || !c.was_online) {
        c.failed = true;
        if (!c.reason) c.reason = failing.reason;
    }
    for (Part& part : c.parts) {
        if (part.number == failing.number || !is_lasting(part)) continue;
        if (c.failed || part.region == failing.region) give_back(c, part);
    }
    if (c.failed || failing.release_requested) return;
    const std::string what =
        fmt::format("part {}, {}: {}", failing.number, format_bytes(failing.size), failing.reason->detail);
    // What was to stay, or to come, is gone: then what was to leave is better than nothing.
    const bool undone = c.exchange && !is_leaving(c, failing);
    if (undone) undo_exchange(draft, Reason{failing.reason->code, what});
    if (!undone || !growth) {
        Event event =
            event_about(draft, failing, growth ? "composition.resize-failed" : "composition.part-lost");
        event.code = failing.reason->code;
        event.detail = what;
        draft.events.push_back(std::move(event));
    }
    const bool nothing_left = lasting_size(c).value == 0;
    if (growth && !undone && !nothing_left) c.size = lasting_size(c);
    if (!is_new(failing) || nothing_left) c.reason = failing.reason;
    c.failed = nothing_left && !c.placement.reprovide;
}

Async<Core::Progress> Core::fail_step(PartRef ref, Reason reason) {
    return advance(ref, [this, reason = std::move(reason)](Draft& draft) {
        Part& part = draft.part();
        if (is_end(part.state)) return false;
        const bool first = !part.reason;
        part.reason = reason;
        if (first) note_failure(draft);
        const bool unbound =
            part.state == CompositionState::kPending || part.state == CompositionState::kBinding;
        // The carve is undone first, as a step of its own.
        if (first && unbound && part.carve && part.carve->done) return true;
        part.state = CompositionState::kFailed;
        if (unbound) draft.c.undone.emplace_back("reservation");
        return true;
    });
}

Async<Core::Progress> Core::erase_failed(PartRef ref, Error error) {
    // What it calls invalid says nothing about the memory: it may be somewhere else by now.
    const int attempts = error.code == ErrorCode::kInvalidArgument
                             ? std::max(config_.erase_attempts, kAttempts)
                             : config_.erase_attempts;
    if (is_passing(error) || ref.job().failures + 1 < attempts) co_return refused_for_now(ref, error);
    Change change = [this, error](Draft& draft) {
        Part& part = draft.part();
        if (is_end(part.state)) return false;
        // What was found not erased has been dealt with; that it cannot be erased either changes nothing.
        const auto known = quarantine_.find(part.serial);
        const bool held = known != quarantine_.end() && known->second.is_held();
        const bool first = !part.reason;
        if (!held)
            part.reason = Reason{
                "erase-failed", fmt::format("its memory could not be erased ({}) and is kept out of the pool",
                                            error.message)};
        if (first) note_failure(draft);
        part.state = CompositionState::kFailed;
        end_step(draft.c, part.number, "erase", now(), error.message);
        end_step(draft.c, part.number, "erase-before-bind", now(), error.message);
        draft.c.undone = {"reservation"};
        if (held) return true;
        if (part.serial.value != 0) draft.quarantine = {part.serial, part.size, error.message};
        Event event = event_about(draft, part, "ld.quarantined");
        event.code = "erase-failed";
        event.detail = fmt::format("LD {}: {}", part.memory.ld.value, error.message);
        draft.events.push_back(std::move(event));
        return true;
    };
    co_return co_await advance(ref, std::move(change));
}

}  // namespace memtide::fm

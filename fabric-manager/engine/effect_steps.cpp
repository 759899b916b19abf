// The steps of a job that have an effect on a switch: journal, effect, look, journal.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace {

using enum ActionKind;

// Whether trying the very same again can help.
bool is_passing(const Error& error) {
    switch (error.code) {
        case ErrorCode::kUnavailable:
        case ErrorCode::kTimeout:
        case ErrorCode::kProtocol:
        case ErrorCode::kConflict:
        case ErrorCode::kCancelled:
            return true;
        default:
            return false;
    }
}

// Refusals that a device may take back get a few attempts, a refused argument does not.
constexpr int kAttempts = 3;
bool is_final(const Error& error, int failures) {
    if (is_passing(error)) return false;
    return error.code == ErrorCode::kInvalidArgument || failures >= kAttempts;
}

}  // namespace

// Waits for the switch's one operation at a time.
Async<AsyncMutex::Lock> Core::turn_at_switch(EntryPtr entry) {
    const SteadyTime began = std::chrono::steady_clock::now();
    AsyncMutex::Lock lock = co_await switches_.at(entry->c.where.switch_id)->operation.lock();
    entry->waited_ms += since_ms(began);
    co_return lock;
}

Async<Core::Progress> Core::bind_step(EntryPtr entry) {
    const AsyncMutex::Lock turn = co_await turn_at_switch(entry);
    // Others had their turn meanwhile: decide again on what is true now.
    if (stopping_ || next(entry->c).kind != kBind) co_return Progress::kAgain;
    if (entry->c.state == CompositionState::kPending) {
        Change change = [this](Draft& draft) {
            Composition& c = draft.c;
            if (c.state != CompositionState::kPending || c.release_requested) return false;
            c.state = CompositionState::kBinding;
            begin_step(c, "bind", now());
            return true;
        };
        const Progress journaled = co_await advance(entry, std::move(change));
        if (journaled != Progress::kAgain || entry->c.state != CompositionState::kBinding)
            co_return journaled;
    }
    point("effect", "bind");
    const Result<> done = co_await bind(entry);
    point("effected", "bind");
    if (done) {
        entry->failures = 0;
        co_return Progress::kAgain;
    }
    if (!is_final(done.error(), entry->failures + 1)) co_return refused_for_now(entry, done.error());
    Reason reason{"bind-refused", done.error().message};
    co_return co_await fail_step(entry, std::move(reason));
}

Async<Core::Progress> Core::unbind_step(EntryPtr entry) {
    const AsyncMutex::Lock turn = co_await turn_at_switch(entry);
    if (stopping_ || next(entry->c).kind != kUnbind) co_return Progress::kAgain;
    if (entry->c.state == CompositionState::kDraining) {
        Change change = [this](Draft& draft) {
            if (draft.c.state != CompositionState::kDraining) return false;
            draft.c.state = CompositionState::kUnbinding;
            end_step(draft.c, "drain", now(), draft.c.forced ? "forced" : "");
            begin_step(draft.c, "unbind", now());
            if (draft.c.forced) {
                draft.code = "forced";
                draft.detail = "unbound as a surprise removal, without waiting for the agent";
            }
            return true;
        };
        const Progress journaled = co_await advance(entry, std::move(change));
        if (journaled != Progress::kAgain || entry->c.state != CompositionState::kUnbinding)
            co_return journaled;
    }
    point("effect", "unbind");
    const Result<> done = co_await unbind(entry);
    point("effected", "unbind");
    if (!done) co_return refused_for_now(entry, done.error());
    entry->failures = 0;
    co_return Progress::kAgain;
}

Async<Core::Progress> Core::await_background_step(EntryPtr entry) {
    const AsyncMutex::Lock turn = co_await turn_at_switch(entry);
    if (stopping_ || next(entry->c).kind != kAwaitBackground) co_return Progress::kAgain;
    const VppbAddress where = entry->c.where;
    const fmapi::Opcode operation = entry->c.state == CompositionState::kUnbinding
                                        ? fmapi::Opcode::kUnbindVppb
                                        : fmapi::Opcode::kBindVppb;
    Result<> done = co_await follow_background(where.switch_id, Target::the_switch(), operation, entry);
    const Result<> looked = co_await look_at_vcs(where);
    if (!looked) done = looked;
    if (!done) co_return refused_for_now(entry, done.error());
    // A switch that says that nothing runs and still shows the vPPB busy is asked again after a pause.
    ++entry->failures;
    co_return next(entry->c).kind == kAwaitBackground ? Progress::kRetry : Progress::kAgain;
}

Async<Core::Progress> Core::erase_step(EntryPtr entry, ActionKind kind) {
    const bool before_bind = kind == kEraseBeforeBind;
    const CompositionState from = entry->c.state;
    const std::string name = before_bind ? "erase-before-bind" : "erase";
    if (before_bind) {
        Change change = [this, from, name](Draft& draft) {
            const auto under_way = [&](const Step& step) { return step.name == name && !step.ended; };
            if (draft.c.state != from || std::ranges::any_of(draft.c.steps, under_way)) return false;
            begin_step(draft.c, name, now());
            return true;
        };
        const Progress journaled = co_await advance(entry, std::move(change));
        if (journaled != Progress::kAgain || entry->c.state != from || entry->c.release_requested)
            co_return journaled;
    }
    const SwitchId switch_id = entry->c.where.switch_id;
    if (is_connected_anew(switch_id)) {
        doubt(switch_id);
        co_return Progress::kAgain;
    }
    const std::uint64_t connection = switches_.at(switch_id)->connection;
    const std::uint64_t carving = carvings_[entry->c.memory.device];
    const Target target = target_of(entry->c.memory, entry->c.port);
    point("effect", "erase");
    const Result<> done = co_await sanitize(switch_id, target, entry);
    point("effected", "erase");
    if (!done) co_return co_await erase_failed(entry, done.error());
    // Between two attempts to bind, the failures counted are those of the bind.
    if (from != CompositionState::kBinding) entry->failures = 0;
    // The device's memory was, or may have been, divided anew meanwhile: what was erased may be another LD's
    // now.
    if (is_connected_anew(switch_id)) {
        doubt(switch_id);
        co_return Progress::kAgain;
    }
    if (carving != carvings_[entry->c.memory.device]) co_return Progress::kAgain;
    Change change = [this, from, name, before_bind, connection](Draft& draft) {
        Composition& c = draft.c;
        if (c.state != from) return false;
        end_step(c, name, now());
        draft.erased_over = connection;
        if (before_bind) return true;
        c.erased = true;
        c.state = c.reason ? CompositionState::kFailed : CompositionState::kReleased;
        if (c.reason) c.undone = {"bind", "reservation"};
        return true;
    };
    co_return co_await advance(entry, std::move(change));
}

Async<Core::Progress> Core::erase_failed(EntryPtr entry, Error error) {
    if (is_passing(error)) co_return refused_for_now(entry, error);
    if (entry->failures + 1 < config_.erase_attempts) {
        trouble(entry, error);
        co_return Progress::kRetry;
    }
    Change change = [this, error](Draft& draft) {
        Composition& c = draft.c;
        if (is_end(c.state)) return false;
        c.state = CompositionState::kFailed;
        c.reason = Reason{
            "erase-failed",
            fmt::format("its memory could not be erased ({}) and is kept out of the pool", error.message)};
        end_step(c, "erase", now(), error.message);
        end_step(c, "erase-before-bind", now(), error.message);
        c.undone = {"reservation"};
        if (c.serial.value != 0) draft.quarantine = {c.serial, c.size, error.message};
        Event event;
        event.time = now();
        event.type = "ld.quarantined";
        event.composition = c.id;
        event.switch_id = c.where.switch_id;
        event.device = c.memory.device;
        event.code = "erase-failed";
        event.detail = fmt::format("LD {}: {}", c.memory.ld.value, error.message);
        draft.events.push_back(std::move(event));
        return true;
    };
    co_return co_await advance(entry, std::move(change));
}

Async<Core::Progress> Core::allocate_step(EntryPtr entry, ActionKind kind) {
    const bool undo = kind == kUndoAllocate;
    const AsyncMutex::Lock turn = co_await turn_at_switch(entry);
    if (stopping_ || next(entry->c).kind != kind) co_return Progress::kAgain;
    const bool possible = !undo || is_untouched(entry->c);
    if (possible) {
        Change change = [this](Draft& draft) {
            begin_step(draft.c, "allocate", now());
            return true;
        };
        const Progress journaled = co_await advance(entry, std::move(change));
        if (journaled != Progress::kAgain) co_return journaled;
        // Memory of every LD that is not bound may move: none of it counts as erased any more.
        inventory_.forget_clean(entry->c.memory.device);
        ++carvings_[entry->c.memory.device];
    }
    Result<SerialNumber> serial{SerialNumber{}};
    if (possible) {
        std::vector<LdSize> sizes = undo ? entry->c.carve->before : entry->c.carve->after;
        point("effect", "allocate");
        serial = co_await set_sizes(entry, std::move(sizes));
        point("effected", "allocate");
    }
    if (!serial) {
        const Error error = serial.error();
        if (!is_final(error, entry->failures + 1)) co_return refused_for_now(entry, error);
        Reason reason{"allocate-refused", error.message};
        if (!undo) co_return co_await fail_step(entry, std::move(reason));
    }
    entry->failures = 0;
    Change change = [this, undo, possible, serial](Draft& draft) {
        Composition& c = draft.c;
        end_step(c, "allocate", now(), undo ? "undone" : "");
        if (undo) {
            if (possible && serial) c.undone.emplace_back("allocate");
            c.carve.reset();
        } else {
            c.carve->done = true;
            if (serial->value != 0) c.serial = *serial;
        }
        return true;
    };
    co_return co_await advance(entry, std::move(change));
}

// Whether the LDs of its carve are still as the carve left them and nobody else's, so that it can be undone.
bool Core::is_untouched(const Composition& c) const {
    return std::ranges::all_of(c.carve->after, [&](const LdSize& one) {
        const LogicalDevice* ld = inventory_.ld({c.memory.device, one.ld});
        return ld != nullptr && ld->size == one.size && !ld->bound_at &&
               (!ld->composition || ld->composition == c.id);
    });
}

Async<Core::Progress> Core::fail_step(EntryPtr entry, Reason reason) {
    return advance(entry, [reason = std::move(reason)](Draft& draft) {
        Composition& c = draft.c;
        if (is_end(c.state)) return false;
        const bool first = !c.reason;
        c.reason = reason;
        const bool unbound = c.state == CompositionState::kPending || c.state == CompositionState::kBinding;
        // The carve is undone first, as a step of its own.
        if (first && unbound && c.carve && c.carve->done) return true;
        c.state = CompositionState::kFailed;
        if (unbound) c.undone.emplace_back("reservation");
        return true;
    });
}

}  // namespace memtide::fm

// The loop that takes one composition from step to step. It runs while there is something to do; whoever
// changes what it looks at calls kick().
#include <algorithm>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace {

using enum ActionKind;

double since_ms(SteadyTime began) { return to_ms(std::chrono::steady_clock::now() - began); }

bool is_idle(ActionKind kind) {
    return kind == kNothing || kind == kAwaitSwitch || kind == kAwaitAgentOnline ||
           kind == kAwaitAgentOffline;
}

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

// --- What it looks at
// ---------------------------------------------------------------------------------------

SwitchView Core::switch_view(const Composition& c) const {
    SwitchView view;
    const Switch* owner = inventory_.find_switch(c.where.switch_id);
    if (owner == nullptr || !owner->up || !owner->inventoried || switches_.at(c.where.switch_id)->doubtful) {
        if (owner != nullptr) view.trouble = owner->error;
        return view;
    }
    view.known = true;
    const Device* device = inventory_.device(c.memory.device);
    view.device_present = device != nullptr && device->present && device->switch_id == c.where.switch_id &&
                          device->port == c.port;
    if (const LogicalDevice* ld = inventory_.ld(c.memory)) {
        view.ld_size = ld->size;
        view.ld_clean = ld->clean && !ld->quarantined;
        view.ld_elsewhere = ld->bound_at && *ld->bound_at != c.where;
    }
    const Vppb* vppb = inventory_.vppb(c.where);
    if (vppb == nullptr) return view;
    switch (vppb->status) {
        case BindingStatus::kUnbound:
            view.vppb = VppbView::kFree;
            break;
        case BindingStatus::kInProgress:
            view.vppb = VppbView::kBusy;
            break;
        case BindingStatus::kBoundPort:
            view.vppb =
                vppb->port == c.port && c.memory.ld == kWholeDevice ? VppbView::kOurs : VppbView::kOther;
            break;
        case BindingStatus::kBoundLd:
            view.vppb = vppb->port == c.port && vppb->ld == c.memory.ld ? VppbView::kOurs : VppbView::kOther;
            break;
    }
    return view;
}

AgentView Core::agent_view(const Composition& c) const {
    const AgentState& agent = *agents_.at(c.host);
    AgentView view{agent.reported, agent.boot_id, agent.revision_seen, std::nullopt};
    const auto own = agent.compositions.find(c.id);
    if (own != agent.compositions.end()) view.composition = own->second;
    return view;
}

Action Core::next(const Composition& c) const { return next_step(c, switch_view(c), agent_view(c)); }

// --- The loop
// -----------------------------------------------------------------------------------------------

void Core::kick(const EntryPtr& entry) {
    if (stopping_) return;
    if (entry->job_running) {
        entry->look_again = true;
        return;
    }
    const Action action = next(entry->c);
    if (is_idle(action.kind)) {
        idle(entry, action);
        return;
    }
    entry->job_running = true;
    spawn(run_job(entry));
}

void Core::kick(const std::set<CompositionId>& ids) {
    for (const CompositionId& id : ids)
        if (const EntryPtr entry = find(id)) kick(entry);
}

Async<> Core::run_job(EntryPtr entry) {
    struct Running {
        Entry& entry;
        ~Running() { entry.job_running = false; }
    };
    const Running running{*entry};
    while (!stopping_) {
        entry->look_again = false;
        Action action = next(entry->c);
        if (is_idle(action.kind)) {
            idle(entry, action);
            break;
        }
        if (entry->agent_wait) entry->waited_ms += since_ms(*std::exchange(entry->agent_wait, std::nullopt));
        const Progress progress = co_await perform(entry, std::move(action));
        if (progress == Progress::kIdle && !entry->look_again) break;
        if (progress != Progress::kRetry || stopping_) continue;
        const SteadyTime began = std::chrono::steady_clock::now();
        co_await entry->kick.wait_until(began + backoff(entry->failures));
        entry->waited_ms += since_ms(began);
    }
}

Milliseconds Core::backoff(int failures) const {
    const int doublings = std::clamp(failures - 1, 0, 16);
    return std::min(config_.timing.retry_min * (1 << doublings), config_.timing.retry_max);
}

// Says what is waited for; not journaled, since it follows from what is.
void Core::idle(const EntryPtr& entry, const Action& action) {
    Composition& c = entry->c;
    const bool agent = action.kind == kAwaitAgentOnline || action.kind == kAwaitAgentOffline;
    if (agent && !entry->agent_wait) entry->agent_wait = std::chrono::steady_clock::now();
    c.waiting_for = action.waiting_for;
    c.holders.clear();
    if (action.kind != kAwaitAgentOffline) return;
    const AgentState& state = *agents_.at(c.host);
    const auto own = state.compositions.find(c.id);
    if (own != state.compositions.end()) c.holders = own->second.holders;
}

// A step failed and will be tried again: said once, not at every attempt.
void Core::trouble(const EntryPtr& entry, const Error& error) {
    ++entry->failures;
    meters_->retries.add();
    entry->c.waiting_for = "the next attempt: " + error.message;
    if (entry->last_trouble == error.message) return;
    entry->last_trouble = error.message;
    Event event;
    event.type = "composition.retry";
    event.composition = entry->c.id;
    event.host = entry->c.host;
    event.switch_id = entry->c.where.switch_id;
    event.state = std::string(to_string(entry->c.state));
    event.code = std::string(to_string(error.code));
    event.detail = error.message;
    emit(std::move(event));
}

Core::Progress Core::refused_for_now(const EntryPtr& entry, const Error& error) {
    if (stopping_ || error.code == ErrorCode::kCancelled) return Progress::kIdle;
    trouble(entry, error);
    // Whether it was carried out is not known: the switch has to be read before anything is decided.
    if (error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
        error.code == ErrorCode::kProtocol)
        doubt(entry->c.where.switch_id);
    return Progress::kRetry;
}

// --- Steps
// --------------------------------------------------------------------------------------------------

Async<Core::Progress> Core::advance(EntryPtr entry, Change change) {
    const Result<> durable = co_await journal(entry, std::move(change));
    if (durable) co_return Progress::kAgain;
    if (stopping_) co_return Progress::kIdle;
    trouble(entry, durable.error());
    co_return Progress::kRetry;
}

Async<Core::Progress> Core::perform(EntryPtr entry, Action action) {
    const CompositionState from = entry->c.state;
    // Each change looks at the state again: a client's release may have been journaled in between.
    const auto enter = [from](CompositionState to, std::function<void(Composition&)> edit) {
        return [from, to, edit = std::move(edit)](Draft& draft) {
            if (draft.c.state != from) return false;
            draft.c.state = to;
            edit(draft.c);
            return true;
        };
    };
    switch (action.kind) {
        case kEraseBeforeBind:
        case kErase:
            return erase_step(entry, action.kind);
        case kAllocate:
        case kUndoAllocate:
            return allocate_step(entry, action.kind);
        case kBind:
            return bind_step(entry);
        case kUnbind:
            return unbind_step(entry);
        case kAwaitBackground:
            return await_background_step(entry);
        case kFail:
            return fail_step(entry, *action.reason);
        case kEnterOnlining:
            return advance(entry, [this, from](Draft& draft) {
                if (draft.c.state != from || draft.c.release_requested) return false;
                draft.c.state = CompositionState::kOnlining;
                end_step(draft.c, "bind", now());
                begin_step(draft.c, "online", now());
                return true;
            });
        case kBecomeOnline:
            return advance(entry, [this, from, agent = agent_view(entry->c)](Draft& draft) {
                if (draft.c.state != from) return false;
                draft.c.state = CompositionState::kOnline;
                draft.c.node = agent.composition->node;
                draft.c.region = agent.composition->region;
                draft.c.boot_id = agent.boot_id;
                end_step(draft.c, "online", now());
                return true;
            });
        case kReenterOnlining:
            return advance(entry, [this, from, agent = agent_view(entry->c)](Draft& draft) {
                if (draft.c.state != from) return false;
                draft.code = agent.boot_id != draft.c.boot_id ? "host-rebooted" : "memory-offline";
                draft.detail = agent.boot_id != draft.c.boot_id
                                   ? "the host rebooted; its agent brings the memory back"
                                   : "its agent reports that the memory is not online any more";
                draft.c.state = CompositionState::kOnlining;
                draft.c.node.reset();
                draft.c.region.reset();
                begin_step(draft.c, "online", now());
                return true;
            });
        case kStartDrain:
            return advance(entry, [this, from](Draft& draft) {
                if (draft.c.state != from) return false;
                end_step(draft.c, "bind", now());
                begin_drain(draft.c);
                return true;
            });
        case kEnterErasing:
            return advance(entry, enter(CompositionState::kErasing, [this](Composition& c) {
                               end_step(c, "drain", now());
                               end_step(c, "unbind", now());
                               c.node.reset();
                               c.region.reset();
                               c.drain_deadline.reset();
                               begin_step(c, "erase", now());
                           }));
        case kRelease:
            return advance(entry, enter(CompositionState::kReleased,
                                        [this](Composition& c) { end_step(c, "bind", now(), "given up"); }));
        case kNothing:
        case kAwaitSwitch:
        case kAwaitAgentOnline:
        case kAwaitAgentOffline:
            break;
    }
    return nothing_to_do();
}

Async<Core::Progress> Core::nothing_to_do() { co_return Progress::kIdle; }

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
            // From here on a host may write to it.
            if (c.serial.value != 0) draft.lds.push_back({c.serial, c.size, LdCondition::kDirty, {}});
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
    const std::uint64_t carving = carvings_[entry->c.memory.device];
    const Target target =
        entry->c.memory.ld == kWholeDevice
            ? Target::device(entry->c.port)
            : Target::logical_device(entry->c.port, static_cast<std::uint8_t>(entry->c.memory.ld.value));
    point("effect", "erase");
    const Result<> done = co_await sanitize(entry->c.where.switch_id, target, entry);
    point("effected", "erase");
    if (!done) co_return co_await erase_failed(entry, done.error());
    entry->failures = 0;
    // The device's memory was divided anew meanwhile: what was erased may be another LD's now.
    if (carving != carvings_[entry->c.memory.device]) co_return Progress::kAgain;
    Change change = [this, from, name, before_bind](Draft& draft) {
        Composition& c = draft.c;
        if (c.state != from) return false;
        end_step(c, name, now());
        if (c.serial.value != 0) draft.lds.push_back({c.serial, c.size, LdCondition::kClean, {}});
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
        if (c.serial.value != 0)
            draft.lds.push_back({c.serial, c.size, LdCondition::kQuarantined, error.message});
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
        // Memory of every LD that is not bound may move: none of it counts as erased any more.
        Change change = [this](Draft& draft) {
            begin_step(draft.c, "allocate", now());
            for (const LdAddress& dirty : inventory_.forget_clean(draft.c.memory.device))
                if (const LogicalDevice* ld = inventory_.ld(dirty); ld->serial.value != 0)
                    draft.lds.push_back({ld->serial, ld->size, LdCondition::kDirty, {}});
            return true;
        };
        const Progress journaled = co_await advance(entry, std::move(change));
        if (journaled != Progress::kAgain) co_return journaled;
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

// --- Deadlines
// ----------------------------------------------------------------------------------------------

void Core::watch_deadlines(const EntryPtr& entry) {
    const auto watch = [&](const std::optional<Time>& time) {
        if (time) deadlines_.emplace(*time, entry->c.id);
    };
    if (!entry->c.release_requested) watch(entry->c.expires);
    watch(entry->c.drain_deadline);
    deadlines_changed_.notify_all();
}

Async<> Core::run_deadlines() {
    // The wall clock may be set meanwhile: looks again from time to time.
    constexpr std::chrono::seconds kLongest{30};
    while (!stopping_) {
        const Time current = now();
        while (!deadlines_.empty() && deadlines_.begin()->first <= current) {
            const EntryPtr entry = find(deadlines_.begin()->second);
            deadlines_.erase(deadlines_.begin());
            if (entry && !is_end(entry->c.state)) spawn(on_deadline(entry));
        }
        std::chrono::nanoseconds pause = kLongest;
        if (!deadlines_.empty())
            pause = std::min<std::chrono::nanoseconds>(pause, deadlines_.begin()->first - current);
        co_await deadlines_changed_.wait_until(std::chrono::steady_clock::now() + pause);
    }
}

Async<> Core::on_deadline(EntryPtr entry) {
    const Time current = now();
    if (entry->c.expires && *entry->c.expires <= current && !entry->c.release_requested) {
        Event event;
        event.type = "composition.expired";
        event.composition = entry->c.id;
        event.host = entry->c.host;
        event.detail = "its ttl is over; it is released";
        emit(std::move(event));
        while (!stopping_) {
            const Outcome<Composition> released = co_await do_release(entry, false);
            if (released || released.error().code == problem::kCompositionEnded) break;
            co_await pause_us(config_.timing.retry_max);
        }
    }
    const bool overdue = entry->c.state == CompositionState::kDraining && entry->c.drain_deadline &&
                         *entry->c.drain_deadline <= current;
    if (!overdue || std::exchange(entry->overdue_told, true)) co_return;
    std::string holders;
    for (const Holder& holder : entry->c.holders)
        holders += fmt::format("{}{} held by {} ({})", holders.empty() ? "; " : ", ", holder.block,
                               holder.command.empty() ? "unknown" : holder.command,
                               holder.pid ? std::to_string(*holder.pid) : "?");
    Event event;
    event.type = "composition.drain-overdue";
    event.composition = entry->c.id;
    event.host = entry->c.host;
    event.detail =
        "its memory is not offline at the drain deadline; it stays bound until it is, or until the "
        "release is forced" +
        holders;
    emit(std::move(event));
}

}  // namespace memtide::fm

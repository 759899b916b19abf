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

bool is_idle(ActionKind kind) {
    return kind == kNothing || kind == kAwaitSwitch || kind == kAwaitAgentOnline ||
           kind == kAwaitAgentOffline;
}

}  // namespace

// --- What it looks at ---

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
    const EntryPtr entry = find(c.id);
    view.gone_for_long =
        entry && entry->missed &&
        switches_.at(c.where.switch_id)->read_began >= *entry->missed + config_.timing.gone_after;
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

// --- The loop ---

void Core::kick(const EntryPtr& entry) {
    if (stopping_) return;
    if (entry->job_running) {
        entry->look_again = true;
        return;
    }
    const Action action = look(entry);
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
        Action action = look(entry);
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

// The next step, with an eye on memory that is missing.
Action Core::look(const EntryPtr& entry) {
    const SwitchView view = switch_view(entry->c);
    watch_missing(entry, view);
    return next_step(entry->c, view, agent_view(entry->c));
}

// Has the switch read once more when the memory seems to be gone, after a while.
void Core::watch_missing(const EntryPtr& entry, const SwitchView& view) {
    if (!view.known) return;
    if (!is_missing(entry->c, view)) {
        entry->missed.reset();
        return;
    }
    if (entry->missed) return;
    entry->missed = std::chrono::steady_clock::now();
    spawn(read_again_later(entry->c.where.switch_id));
}

Async<> Core::read_again_later(SwitchId id) {
    co_await pause_us(config_.timing.gone_after);
    if (!stopping_) doubt(id);
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

// --- Steps ---

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

}  // namespace memtide::fm

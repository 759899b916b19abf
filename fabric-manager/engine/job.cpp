// The loop that takes one part of a composition from step to step. It runs while there is something to do;
// whoever changes what it looks at calls kick().
#include <algorithm>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/engine/retrying.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace {

using enum ActionKind;

bool is_idle(ActionKind kind) {
    return kind == kNothing || kind == kAwaitSwitch || kind == kAwaitAgentOnline ||
           kind == kAwaitAgentOffline;
}

}  // namespace

Action Core::next(const PartRef& ref) const {
    return next_step(composition_view(ref), ref.part(), switch_view(ref), agent_view(ref));
}

// --- The loop ---

void Core::kick(const PartRef& ref) {
    if (stopping_) return;
    PartJob& job = ref.job();
    if (job.running) {
        job.look_again = true;
        return;
    }
    const Action action = look(ref);
    if (is_idle(action.kind)) {
        idle(ref, action);
        return;
    }
    job.running = true;
    spawn(run_job(ref));
}

void Core::kick(const EntryPtr& entry) {
    std::vector<std::uint32_t> numbers;
    for (const Part& part : entry->c.parts) numbers.push_back(part.number);
    for (const std::uint32_t number : numbers) kick(PartRef{entry, number});
}

// Region-mates wait for each other.
void Core::kick_others(const EntryPtr& entry, std::uint32_t number) {
    auto later = [](std::shared_ptr<Core> self, EntryPtr one, std::uint32_t but) -> Async<> {
        std::vector<std::uint32_t> numbers;
        for (const Part& part : one->c.parts)
            if (part.number != but && !is_end(part.state)) numbers.push_back(part.number);
        for (const std::uint32_t each : numbers) self->kick(PartRef{one, each});
        co_return;
    };
    spawn(later(shared_from_this(), entry, number));
}

void Core::kick(const std::set<CompositionId>& ids) {
    for (const CompositionId& id : ids)
        if (const EntryPtr entry = find(id)) kick(entry);
}

void Core::kick(const std::set<PartId>& ids) {
    for (const PartId& id : ids) {
        const EntryPtr entry = find(id.composition);
        if (entry && entry->c.part(id.number) != nullptr) kick(PartRef{entry, id.number});
    }
}

Async<> Core::run_job(PartRef ref) {
    struct Running {
        PartJob& job;
        ~Running() { job.running = false; }
    };
    PartJob& job = ref.job();
    const Running running{job};
    while (!stopping_) {
        job.look_again = false;
        Action action = look(ref);
        if (is_idle(action.kind)) {
            idle(ref, action);
            break;
        }
        if (job.agent_wait) job.waited_ms += since_ms(*std::exchange(job.agent_wait, std::nullopt));
        const Progress progress = co_await perform(ref, std::move(action));
        if (progress == Progress::kIdle && !job.look_again) break;
        if (progress != Progress::kRetry || stopping_) continue;
        const SteadyTime began = std::chrono::steady_clock::now();
        co_await job.kick.wait_until(began + backoff(job.failures));
        job.waited_ms += since_ms(began);
    }
}

// The next step, with an eye on memory that is missing.
Action Core::look(const PartRef& ref) {
    const SwitchView view = switch_view(ref);
    watch_missing(ref, view);
    return next_step(composition_view(ref), ref.part(), view, agent_view(ref));
}

// Has the switch read once more when the memory seems to be gone, after a while.
void Core::watch_missing(const PartRef& ref, const SwitchView& view) {
    if (!view.known) return;
    PartJob& job = ref.job();
    if (!is_missing(ref.part(), view)) {
        job.missed.reset();
        return;
    }
    if (job.missed) return;
    job.missed = std::chrono::steady_clock::now();
    spawn(read_again_later(ref.switch_id()));
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
void Core::idle(const PartRef& ref, const Action& action) {
    PartJob& job = ref.job();
    Part& part = ref.part();
    const bool agent = action.kind == kAwaitAgentOnline || action.kind == kAwaitAgentOffline;
    if (agent && !job.agent_wait) job.agent_wait = std::chrono::steady_clock::now();
    part.waiting_for = action.waiting_for;
    part.holders.clear();
    if (action.kind != kAwaitAgentOffline) return;
    const AgentState& state = *agents_.at(ref.entry->c.host);
    const auto own = state.regions.find(RegionId{ref.entry->c.id, part.region});
    if (own != state.regions.end()) part.holders = own->second.holders;
}

// A step failed and will be tried again: said once, not at every attempt.
void Core::trouble(const PartRef& ref, const Error& error) {
    PartJob& job = ref.job();
    ++job.failures;
    meters_->retries.add();
    ref.part().waiting_for = "the next attempt: " + error.message;
    if (job.last_trouble == error.message) return;
    job.last_trouble = error.message;
    Event event;
    event.type = "composition.retry";
    event.composition = ref.entry->c.id;
    event.host = ref.entry->c.host;
    event.switch_id = ref.switch_id();
    event.state = std::string(to_string(ref.part().state));
    event.code = std::string(to_string(error.code));
    event.detail = error.message;
    emit(std::move(event));
}

Core::Progress Core::refused_for_now(const PartRef& ref, const Error& error) {
    if (stopping_ || error.code == ErrorCode::kCancelled) return Progress::kIdle;
    trouble(ref, error);
    if (calls_for_a_look(error)) doubt(ref.switch_id());
    return Progress::kRetry;
}

// --- Steps ---

Async<Core::Progress> Core::advance(PartRef ref, Change change) {
    const Result<> durable = co_await journal(ref.entry, std::move(change), ref.number);
    if (durable) co_return Progress::kAgain;
    if (stopping_) co_return Progress::kIdle;
    trouble(ref, durable.error());
    co_return Progress::kRetry;
}

Async<Core::Progress> Core::perform(PartRef ref, Action action) {
    const CompositionState from = ref.part().state;
    // Each change looks at the state again: a client's release may have been journaled in between.
    const auto enter = [from](CompositionState to, std::function<void(Composition&, Part&)> edit) {
        return [from, to, edit = std::move(edit)](Draft& draft) {
            Part& part = draft.part();
            if (part.state != from) return false;
            part.state = to;
            edit(draft.c, part);
            return true;
        };
    };
    switch (action.kind) {
        case kEraseBeforeBind:
        case kErase:
            return erase_step(ref, action.kind);
        case kAllocate:
        case kUndoAllocate:
            return allocate_step(ref, action.kind);
        case kBind:
            return bind_step(ref);
        case kUnbind:
            return unbind_step(ref);
        case kAwaitBackground:
            return await_background_step(ref);
        case kFail:
            return fail_step(ref, *action.reason);
        case kOffer:
            return offer_step(ref);
        case kSeeAccepted:
            return see_accepted_step(ref);
        case kOnlineRefused:
            return online_refused_step(ref, *action.reason);
        case kNotErased:
            return not_erased_step(ref);
        case kEnterOnlining:
            if (const AgentState& host = *agents_.at(ref.entry->c.host); host.reported)
                ref.job().boot_at_bind = host.boot_id;
            return advance(ref, [this, from](Draft& draft) {
                Part& part = draft.part();
                if (part.state != from || part.release_requested) return false;
                part.state = CompositionState::kOnlining;
                end_step(draft.c, part.number, "bind", now());
                begin_step(draft.c, part.number, "online", now());
                return true;
            });
        case kBecomeOnline:
            return advance(ref, enter(CompositionState::kOnline,
                                      [this, agent = agent_view(ref)](Composition& c, Part& part) {
                                          part.node = agent.region->node;
                                          part.region_name = agent.region->region;
                                          part.boot_id = agent.boot_id;
                                          if (agent.region->verified_pages != 0)
                                              part.verified_pages = agent.region->verified_pages;
                                          end_step(c, part.number, "online", now());
                                      }));
        case kReenterOnlining:
            return advance(ref, [this, from, agent = agent_view(ref)](Draft& draft) {
                Part& part = draft.part();
                if (part.state != from) return false;
                const bool rebooted = agent.boot_id != part.boot_id;
                draft.code = rebooted ? "host-rebooted" : "memory-offline";
                draft.detail = rebooted ? "the host rebooted; its agent brings the memory back"
                                        : "its agent reports that the memory is not online any more";
                part.state = CompositionState::kOnlining;
                part.node.reset();
                part.region_name.reset();
                begin_step(draft.c, part.number, "online", now());
                return true;
            });
        case kStartDrain:
            return advance(ref, [this, from](Draft& draft) {
                Part& part = draft.part();
                if (part.state != from) return false;
                end_step(draft.c, part.number, "bind", now());
                begin_drain(draft.c, part);
                return true;
            });
        case kEnterErasing:
            return advance(ref, enter(CompositionState::kErasing, [this](Composition& c, Part& part) {
                               end_step(c, part.number, "drain", now());
                               end_step(c, part.number, "unbind", now());
                               part.node.reset();
                               part.region_name.reset();
                               part.drain_deadline.reset();
                               begin_step(c, part.number, "erase", now());
                           }));
        case kRelease:
            return advance(ref, enter(CompositionState::kReleased, [this](Composition& c, Part& part) {
                               end_step(c, part.number, "bind", now(), "given up");
                           }));
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

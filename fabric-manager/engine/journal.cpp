// Every change of a composition: first durable, then visible.
#include <algorithm>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/desired.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kLateNews{250};

}  // namespace

Async<Result<>> Core::apply(Mutation mutation) {
    if (!store_) co_return fail(ErrorCode::kCancelled, "the manager is stopping");
    // Ids follow the order of the calls, and so does the store.
    for (Event& event : mutation.events) event.id = next_event_++;
    trim_events(mutation);
    const std::vector<Event> events = mutation.events;
    const SteadyTime began = std::chrono::steady_clock::now();
    auto start = [this](auto handler, Mutation what) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        auto work = asio::prefer(executor_, asio::execution::outstanding_work.tracked);
        store_->apply(std::move(what), [shared, work](Result<> result) {
            asio::post(work,
                       [shared, result = std::move(result)]() mutable { (*shared)(std::move(result)); });
        });
    };
    auto token = asio::use_awaitable;
    Result<> result = co_await asio::async_initiate<decltype(asio::use_awaitable), void(Result<>)>(
        start, token, std::move(mutation));
    meters_->journal.observe(to_ms(std::chrono::steady_clock::now() - began) / 1000);
    if (result)
        show_events(events);
    else
        meters_->journal_errors.add();
    co_return result;
}

namespace {

// The first state in which a part may not go on, for the composition's own bookkeeping.
std::optional<std::string> forbidden_step(const Composition& before, const Composition& after) {
    for (const Part& part : after.parts) {
        const Part* old = before.part(part.number);
        if (old == nullptr || old->state == part.state || may_follow(old->state, part.state)) continue;
        return fmt::format("part {} of composition {} cannot go from {} to {}", part.number, after.id.value,
                           to_string(old->state), to_string(part.state));
    }
    return std::nullopt;
}

}  // namespace

// Gives the host's desired state a new revision when the change shows in it.
Core::HostNews Core::tell_agent(const Composition& before, Draft& draft, Mutation& mutation) {
    const std::vector<DesiredRegion> old =
        before.revision == 0 ? std::vector<DesiredRegion>{} : desired_regions(before);
    const std::vector<DesiredRegion> wanted = desired_regions(draft.c);
    if (old == wanted) return {};
    const std::uint64_t revision = ++agents_.at(draft.c.host)->next_revision;
    mutation.hosts.push_back({draft.c.host, revision});
    // Whoever shall let go of a part must have seen that.
    for (Part& part : draft.c.parts) {
        if (part.state != CompositionState::kDraining) continue;
        const Part* was = before.part(part.number);
        if (was == nullptr || was->state != CompositionState::kDraining) part.offline_revision = revision;
    }
    const auto is_new = [&](const DesiredRegion& one) { return std::ranges::find(old, one) == old.end(); };
    return {revision, std::ranges::any_of(wanted, is_new)};
}

// For what an agent has nothing to do about: with the next change, or after a moment.
void Core::tell_agent_later(const HostId& host) {
    if (std::exchange(agents_.at(host)->to_be_told, true)) return;
    auto later = [](std::shared_ptr<Core> self, HostId id) -> Async<> {
        co_await self->pause_us(kLateNews);
        AgentState& agent = *self->agents_.at(id);
        agent.to_be_told = false;
        agent.changed.notify_all();
    };
    spawn(later(shared_from_this(), host));
}

// A composition that is bound at once was Pending all the same.
void Core::add_state_events(const Composition& before, const Draft& draft, Mutation& mutation) {
    Event event = state_event(draft);
    if (before.revision == 0 && draft.c.state == CompositionState::kBinding) {
        Event first = event;
        first.state = std::string(to_string(CompositionState::kPending));
        mutation.events.push_back(std::move(first));
    }
    mutation.events.push_back(std::move(event));
}

Async<Result<>> Core::journal(EntryPtr entry, Change change, std::uint32_t number) {
    const AsyncMutex::Lock lock = co_await entry->journal.lock();
    if (stopping_) co_return fail(ErrorCode::kCancelled, "the manager is stopping");
    Draft draft;
    draft.c = entry->c;
    draft.number = number;
    if (!change(draft)) co_return Result<>();
    settle_exchange(draft.c);
    if (const auto wrong = draft.c.revision == 0 ? std::nullopt : forbidden_step(entry->c, draft.c))
        co_return fail(ErrorCode::kInternal, *wrong);

    draft.c.state = state_of(draft.c);
    draft.c.was_online = draft.c.was_online || draft.c.state == CompositionState::kOnline;
    // What it lost has been replaced, or is not wanted any more; events and its parts have it still.
    if (draft.c.state == CompositionState::kOnline) draft.c.reason.reset();
    const bool moved = draft.c.state != entry->c.state || draft.c.revision == 0;
    const Composition& before = entry->c;
    ++draft.c.revision;
    draft.c.updated = now();
    account(entry, draft.c);
    for (Part& part : draft.c.parts) {
        const Part* old = before.part(part.number);
        if (old == nullptr || old->state != part.state) part.waiting_for.clear();
    }

    Mutation mutation;
    const HostNews host_news = tell_agent(before, draft, mutation);
    if (moved) add_state_events(before, draft, mutation);
    for (Event& event : draft.events) {
        event.time = draft.c.updated;
        mutation.events.push_back(std::move(event));
    }
    if (draft.quarantine) mutation.quarantine.push_back(*draft.quarantine);
    mutation.idempotency = draft.idempotency;
    if (mutation.idempotency) {
        mutation.idempotency->answer = draft.c;
        draft.idempotency->answer = draft.c;
        mutation.forget_idempotency = trim_keys();
    }
    mutation.compositions.push_back({draft.c, false});

    const std::string_view state = to_string(draft.c.state);
    point("journal", state);
    Result<> durable = co_await apply(std::move(mutation));
    if (!durable) co_return durable;
    point("journaled", state);
    publish(entry, std::move(draft), host_news);
    co_return durable;
}

// Closes the books of a phase (compose, release) when it ends: what was not waited for was our own doing.
// Parts wait side by side, so that the one that waited longest counts.
void Core::account(const EntryPtr& entry, Composition& c) const {
    if (c.phase_started == Time{}) return;
    double waited_ms = 0;
    for (const auto& [number, job] : entry->jobs) waited_ms = std::max(waited_ms, job->waited_ms);
    c.phase_waited_ms = entry->waited_before_ms + waited_ms;
    const bool arrived = c.state == CompositionState::kOnline && entry->c.state != CompositionState::kOnline;
    if (!arrived && !is_end(c.state)) return;
    c.manager_overhead_ms += std::max(0.0, to_ms(c.updated - c.phase_started) - c.phase_waited_ms);
    c.phase_started = {};
    c.phase_waited_ms = 0;
}

void Core::publish(const EntryPtr& entry, Draft draft, HostNews host_news) {
    note_memory(draft);
    const Composition before = std::exchange(entry->c, std::move(draft.c));
    const Composition& c = entry->c;
    meters_->note_steps(before.revision == 0 ? Composition{} : before, c);
    if (before.revision == 0) add_entry(entry);
    if (c.phase_started != before.phase_started) {
        entry->waited_before_ms = 0;
        for (const auto& [number, job] : entry->jobs) job->waited_ms = 0;
    }
    publish_parts(entry, before);
    if (before.revision != 0 && !is_end(c.state)) tenants_.hold(c);
    if (c.state != before.state) {
        if (c.state == CompositionState::kOnline && !before.was_online) {
            meters_->to_online.observe(to_ms(c.updated - c.created) / 1000);
            meters_->overhead.observe(c.manager_overhead_ms / 1000);
        }
        if (is_end(c.state)) end_of_life(entry);
    }
    if (host_news.revision != 0) {
        Host* host = inventory_.host(c.host);
        host->revision = std::max(host->revision, host_news.revision);
        if (host_news.to_do)
            agents_.at(c.host)->changed.notify_all();
        else
            tell_agent_later(c.host);
    }
    if (c.state == CompositionState::kDegraded && c.placement.reprovide) {
        if (degraded_.insert(c.id).second) heal_all();
    } else {
        degraded_.erase(c.id);
    }
    watch_deadlines(entry, before);
    entry->changed.notify_all();
}

void Core::publish_parts(const EntryPtr& entry, const Composition& before) {
    const Composition& c = entry->c;
    for (const Part& part : c.parts) {
        const PartId id{c.id, part.number};
        const Part* old = before.part(part.number);
        const bool known = before.revision != 0 && old != nullptr;
        if (!known && !is_end(part.state)) switches_.at(part.where.switch_id)->active.insert(id);
        if (!known) continue;
        if (old->carve && !old->carve->done && part.carve && part.carve->done) inventory_.carved(id);
        if (old->state == part.state) continue;
        PartJob& job = entry->job(part.number);
        job.failures = 0;
        job.last_trouble.clear();
        if (is_end(part.state)) end_of_part(c, part);
        // Its region-mates look at what it has become.
        if (c.parts.size() > 1) kick_others(entry, part.number);
    }
}

void Core::add_entry(const EntryPtr& entry) {
    const Composition& c = entry->c;
    entries_[c.id] = entry;
    by_sequence_[c.sequence] = entry;
    if (is_end(c.state)) {
        ended_.push_back(c.id);
        return;
    }
    if (c.state == CompositionState::kDegraded && c.placement.reprovide) degraded_.insert(c.id);
    tenants_.hold(c);
    agents_.at(c.host)->active.insert(c.id);
    for (const Part& part : c.parts)
        if (!is_end(part.state)) switches_.at(part.where.switch_id)->active.insert({c.id, part.number});
}

void Core::end_of_part(const Composition& c, const Part& part) {
    const PartId id{c.id, part.number};
    inventory_.release(id);
    note_lost(c, part);
    switches_.at(part.where.switch_id)->active.erase(id);
}

void Core::end_of_life(const EntryPtr& entry) {
    const Composition& c = entry->c;
    (c.state == CompositionState::kReleased ? meters_->released : meters_->failed).add();
    log::info("composition ended", {{"composition", c.id},
                                    {"host", c.host},
                                    {"state", to_string(c.state)},
                                    {"reason", c.reason ? c.reason->detail : std::string()}});
    tenants_.let_go(c.id);
    AgentState& agent = *agents_.at(c.host);
    agent.active.erase(c.id);
    for (const Part& part : c.parts) agent.regions.erase({c.id, part.region});
    ended_.push_back(c.id);
    forget_ended();
}

// Ended compositions stay readable for a while; they leave in batches, so that it costs little per
// composition.
void Core::forget_ended() {
    constexpr std::size_t kBatch = 64;
    if (ended_.size() < config_.keep_ended + kBatch) return;
    Mutation mutation;
    for (std::size_t i = 0; i < kBatch; ++i) {
        const EntryPtr old = find(ended_.front());
        ended_.pop_front();
        if (!old) continue;
        CompositionChange change;
        change.composition.id = old->c.id;
        change.forget = true;
        mutation.compositions.push_back(std::move(change));
        by_sequence_.erase(old->c.sequence);
        entries_.erase(old->c.id);
    }
    auto forget = [](std::shared_ptr<Core> self, Mutation what) -> Async<> {
        const Result<> ok = co_await self->apply(std::move(what));
        // They are read again at the next start then, and forgotten then.
        if (!ok) log::warning("could not forget ended compositions", {{"error", ok.error()}});
    };
    spawn(forget(shared_from_this(), std::move(mutation)));
}

// Takes over what the journal now says about the part's memory.
void Core::note_memory(const Draft& draft) {
    if (!draft.quarantine && !draft.erased_over) return;
    const Part& part = *draft.c.part(draft.number);
    const LdAddress memory = part.memory;
    if (draft.quarantine) {
        quarantine_[draft.quarantine->serial] = *draft.quarantine;
        inventory_.set_quarantined(memory, true);
    } else {
        const SwitchState& state = *switches_.at(part.where.switch_id);
        inventory_.set_clean(memory, *draft.erased_over == state.connection);
    }
}

}  // namespace memtide::fm

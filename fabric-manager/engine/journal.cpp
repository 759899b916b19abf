// Every change of a composition: first durable, then visible.
#include <algorithm>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace asio = boost::asio;

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

// What the agent of its host shall be told; nullopt: nothing, the host does not have it (yet, or any more).
std::optional<DesiredComposition> Core::desired_of(const Composition& c) {
    const bool online = c.state == CompositionState::kOnlining || c.state == CompositionState::kOnline;
    const bool offline = c.state == CompositionState::kDraining || c.state == CompositionState::kUnbinding;
    if (!online && !offline) return std::nullopt;
    return DesiredComposition{c.id, c.serial, c.size, online, c.forced, c.drain_deadline};
}

namespace {

bool same(const std::optional<DesiredComposition>& a, const std::optional<DesiredComposition>& b) {
    if (a.has_value() != b.has_value()) return false;
    if (!a) return true;
    return a->online == b->online && a->force == b->force && a->drain_deadline == b->drain_deadline &&
           a->serial == b->serial;
}

}  // namespace

Async<Result<>> Core::journal(EntryPtr entry, Change change) {
    const AsyncMutex::Lock lock = co_await entry->journal.lock();
    if (stopping_) co_return fail(ErrorCode::kCancelled, "the manager is stopping");
    Draft draft;
    draft.c = entry->c;
    if (!change(draft)) co_return Result<>();

    const bool moved = draft.c.state != entry->c.state || draft.c.revision == 0;
    if (draft.c.revision != 0 && moved && !may_follow(entry->c.state, draft.c.state))
        co_return fail(ErrorCode::kInternal,
                       fmt::format("composition {} cannot go from {} to {}", draft.c.id.value,
                                   to_string(entry->c.state), to_string(draft.c.state)));
    ++draft.c.revision;
    draft.c.updated = now();
    const double waited_ms = std::exchange(entry->waited_ms, 0);
    account(draft.c, entry->c, waited_ms);
    if (moved) draft.c.waiting_for.clear();

    Mutation mutation;
    std::uint64_t host_revision = 0;
    const std::optional<DesiredComposition> before =
        draft.c.revision == 1 ? std::nullopt : desired_of(entry->c);
    const std::optional<DesiredComposition> after = desired_of(draft.c);
    if (!same(before, after)) {
        host_revision = ++agents_.at(draft.c.host)->next_revision;
        mutation.hosts.push_back({draft.c.host, host_revision});
        if (after && !after->online && (!before || before->online)) draft.c.offline_revision = host_revision;
    }
    if (moved) mutation.events.push_back(state_event(draft));
    for (Event& event : draft.events) mutation.events.push_back(std::move(event));
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
    if (!durable) {
        entry->waited_ms += waited_ms;
        co_return durable;
    }
    point("journaled", state);
    publish(entry, std::move(draft), host_revision);
    co_return durable;
}

// Closes the books of a phase (compose, release) when it ends: what was not waited for was our own doing.
void Core::account(Composition& c, const Composition& before, double waited_ms) const {
    if (c.phase_started == Time{}) return;
    c.phase_waited_ms += waited_ms;
    const bool arrived = c.state == CompositionState::kOnline && before.state != CompositionState::kOnline;
    if (!arrived && !is_end(c.state)) return;
    c.manager_overhead_ms += std::max(0.0, to_ms(c.updated - c.phase_started) - c.phase_waited_ms);
    c.phase_started = {};
    c.phase_waited_ms = 0;
}

void Core::publish(const EntryPtr& entry, Draft draft, std::uint64_t host_revision) {
    note_memory(draft);
    const Composition before = std::exchange(entry->c, std::move(draft.c));
    const Composition& c = entry->c;
    meters_->note_steps(c.revision == 1 ? Composition{} : before, c);
    if (before.carve && !before.carve->done && c.carve && c.carve->done) inventory_.carved(c.id);
    if (c.revision == 1) add_entry(entry);
    if (c.state != before.state) {
        entry->failures = 0;
        entry->last_trouble.clear();
        if (c.state == CompositionState::kOnline) {
            meters_->to_online.observe(to_ms(c.updated - c.created) / 1000);
            meters_->overhead.observe(c.manager_overhead_ms / 1000);
        }
        if (is_end(c.state)) end_of_life(entry);
    }
    if (host_revision != 0) {
        Host* host = inventory_.host(c.host);
        host->revision = std::max(host->revision, host_revision);
        agents_.at(c.host)->changed.notify_all();
    }
    if (c.expires != before.expires || c.drain_deadline != before.drain_deadline || c.revision == 1)
        watch_deadlines(entry);
    entry->changed.notify_all();
}

void Core::add_entry(const EntryPtr& entry) {
    const Composition& c = entry->c;
    entries_[c.id] = entry;
    by_sequence_[c.sequence] = entry;
    if (is_end(c.state)) {
        ended_.push_back(c.id);
        return;
    }
    tenants_.hold(c);
    agents_.at(c.host)->active.insert(c.id);
    switches_.at(c.where.switch_id)->active.insert(c.id);
}

void Core::end_of_life(const EntryPtr& entry) {
    const Composition& c = entry->c;
    (c.state == CompositionState::kReleased ? meters_->released : meters_->failed).add();
    log::info("composition ended", {{"composition", c.id},
                                    {"host", c.host},
                                    {"state", to_string(c.state)},
                                    {"reason", c.reason ? c.reason->detail : std::string()}});
    inventory_.release(c.id);
    tenants_.let_go(c.id);
    AgentState& agent = *agents_.at(c.host);
    agent.active.erase(c.id);
    agent.compositions.erase(c.id);
    switches_.at(c.where.switch_id)->active.erase(c.id);
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

// Takes over what the journal now says about the composition's memory.
void Core::note_memory(const Draft& draft) {
    const LdAddress memory = draft.c.memory;
    if (draft.quarantine) {
        quarantine_[draft.quarantine->serial] = *draft.quarantine;
        inventory_.set_quarantined(memory, true);
    } else if (draft.erased_over) {
        const SwitchState& state = *switches_.at(draft.c.where.switch_id);
        inventory_.set_clean(memory, *draft.erased_over == state.connection);
    }
}

}  // namespace memtide::fm

// What clients ask for.
#include <algorithm>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/engine/problems.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

EntryPtr Core::find(const CompositionId& id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : found->second;
}

// --- Create ---

Async<Outcome<Created>> Core::create(CompositionRequest request, std::optional<IdempotencyKey> key) {
    return shielded(executor_, do_create(std::move(request), std::move(key)));
}

// The answer to a key that was used before; nullopt when it is new.
Async<std::optional<Outcome<Created>>> Core::replay(const IdempotencyKey& key) {
    for (;;) {
        const auto found = keys_.find(key.key);
        if (found == keys_.end()) co_return std::nullopt;
        if (found->second.body_hash != key.body_hash)
            co_return refuse(problem::kIdempotencyConflict,
                             fmt::format("the Idempotency-Key {} was used with another body before", key.key),
                             ErrorCode::kConflict);
        if (found->second.answer) co_return Created{*found->second.answer, true};
        if (stopping_)
            co_return refuse(problem::kInternalError, "the manager is stopping", ErrorCode::kCancelled);
        co_await key_done_.wait_until(SteadyTime::max());  // the first request with it is under way
    }
}

Async<std::optional<Outcome<Created>>> Core::look_up(IdempotencyKey key) {
    auto look = [](std::shared_ptr<Core> self,
                   IdempotencyKey wanted) -> Async<std::optional<Outcome<Created>>> {
        co_return co_await self->replay(wanted);
    };
    return shielded(executor_, look(shared_from_this(), std::move(key)));
}

Async<Outcome<Created>> Core::do_create(CompositionRequest request, std::optional<IdempotencyKey> key) {
    const std::shared_ptr<Core> self = shared_from_this();
    const Time began = now();
    if (key) {
        std::optional<Outcome<Created>> before = co_await replay(*key);
        if (before) co_return *std::move(before);
    }
    if (Outcome<> fits = check_tenant(config_.tenants, tenants_, request); !fits)
        co_return std::unexpected(std::move(fits.error()));
    Outcome<Plan> plan = place(inventory_, with_defaults(request));
    if (!plan) co_return std::unexpected(plan.error());
    auto entry =
        std::make_shared<Entry>(executor_, draft_composition(std::move(request), *std::move(plan), began));
    // The claim keeps others away while the journal entry is on its way.
    if (const Result<> claimed = inventory_.claim(entry->c); !claimed)
        co_return refuse(problem::kInternalError, claimed.error().message, ErrorCode::kInternal);
    tenants_.hold(entry->c);
    if (key) keys_[key->key] = Key{key->body_hash, std::nullopt};

    Change change = [&](Draft& draft) {
        bind_at_once(entry, draft);
        if (key) draft.idempotency = IdempotencyRecord{key->key, key->body_hash, {}};
        return true;
    };
    const Result<> durable = co_await journal(entry, std::move(change));
    if (key) {
        if (durable) {
            keys_[key->key].answer = entry->c;
            key_order_.push_back(key->key);
        } else {
            keys_.erase(key->key);
        }
        key_done_.notify_all();
    }
    if (!durable) {
        inventory_.release(entry->c.id);
        tenants_.let_go(entry->c.id);
        co_return refuse_for_store(durable.error());
    }
    meters_->created.add();
    Created created{entry->c, false};
    kick(entry);
    co_return created;
}

// Where nothing is in the way, that it shall be bound is journaled together with the composition itself.
void Core::bind_at_once(const EntryPtr& entry, Draft& draft) const {
    for (Part& part : draft.c.parts) {
        if (next(PartRef{entry, part.number}).kind != ActionKind::kBind) continue;
        part.state = CompositionState::kBinding;
        begin_step(draft.c, part.number, "bind", now());
    }
}

// Where it would go now, without anything being done: a composition that is none.
Outcome<PlannedComposition> Core::plan(CompositionRequest request) {
    if (Outcome<> fits = check_tenant(config_.tenants, tenants_, request); !fits)
        return std::unexpected(std::move(fits.error()));
    PlacementRequest wanted = with_defaults(request);
    wanted.explain = true;
    Outcome<Plan> plan = place(inventory_, wanted);
    if (!plan) return std::unexpected(plan.error());
    const std::uint64_t sequence = next_sequence_;
    std::vector<Exclusion> excluded = std::move(plan->excluded);
    Composition c = draft_composition(std::move(request), *std::move(plan), now());
    next_sequence_ = sequence;
    return PlannedComposition{std::move(c), std::move(excluded)};
}

// As placement_request(), once the limits that the request does not give are the configured ones.
PlacementRequest Core::with_defaults(CompositionRequest& request) const {
    LimitOrigins origins = apply_defaults(config_.placement_defaults, request.host, request.tenant,
                                          request.limits, request.may_loosen, request.placement);
    PlacementRequest result = placement_request(request);
    result.origins = std::move(origins);
    return result;
}

PlacementRequest Core::placement_request(const CompositionRequest& request) const {
    const Bytes capacity = config_.reserve_percent == 0 ? Bytes{} : inventory_.totals().capacity;
    return {request.host,
            request.size,
            request.placement,
            request.tenant,
            std::max(config_.reserve, Bytes{capacity.value / 100 * config_.reserve_percent}),
            kMostParts,
            {}};
}

// Memory for a composition that has some already, in as many parts as it may still get.
PlacementRequest Core::request_for_more(const Composition& c, Bytes missing) const {
    PlacementRequest request = placement_request({c.host, missing, c.placement, c.tenant, {}, std::nullopt});
    const auto stay = std::ranges::count_if(
        c.parts, [&](const Part& part) { return is_lasting(part) && !is_leaving(c, part); });
    request.most_parts = static_cast<std::uint8_t>(kMostParts - std::min<std::ptrdiff_t>(stay, kMostParts));
    return request;
}

Composition Core::draft_composition(CompositionRequest request, Plan plan, Time began) {
    Composition c;
    c.id = new_id();
    c.sequence = next_sequence_++;
    c.host = std::move(request.host);
    c.size = request.size;
    c.placement = request.placement;
    c.tenant = std::move(request.tenant);
    c.labels = std::move(request.labels);
    c.created = began;
    c.phase_started = began;
    c.ttl = request.ttl;
    if (c.ttl) c.expires = began + *c.ttl;
    add_parts(c, std::move(plan), began);
    return c;
}

void Core::add_parts(Composition& c, Plan plan, Time began) const {
    const std::uint32_t region = c.next_part;
    for (PartPlacement& placement : plan.parts) {
        Part part;
        part.number = c.next_part++;
        part.region = plan.interleaved ? region : part.number;
        part.size = placement.size;
        part.memory = placement.memory;
        part.serial = placement.serial;
        part.port = placement.port;
        part.where = placement.where;
        part.carve = std::move(placement.carve);
        begin_step(c, part.number, "place", began);
        end_step(c, part.number, "place", now(),
                 fmt::format("LD {} of {} at vPPB {} of VCS {} of {}", part.memory.ld.value,
                             part.memory.device.value, part.where.vppb, part.where.vcs,
                             part.where.switch_id.value));
        c.parts.push_back(std::move(part));
    }
}

CompositionId Core::new_id() {
    constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";  // Crockford: no i l o u
    for (;;) {
        std::string text = "c-";
        std::uint64_t bits = random_();
        for (int i = 0; i < 10; ++i, bits >>= 5) text += kLetters[bits & 31];
        CompositionId id(std::move(text));
        if (!entries_.contains(id)) return id;
    }
}

std::vector<std::string> Core::trim_keys() {
    std::vector<std::string> old;
    while (key_order_.size() >= config_.keep_idempotency && !key_order_.empty()) {
        old.push_back(std::move(key_order_.front()));
        key_order_.pop_front();
        keys_.erase(old.back());
    }
    return old;
}

// --- Release ---

Async<Outcome<Composition>> Core::release(CompositionId id, bool force, Precondition precondition) {
    const EntryPtr entry = find(id);
    if (!entry) {
        auto unknown = [](CompositionId which) -> Async<Outcome<Composition>> {
            co_return refuse_unknown(which);
        };
        return unknown(std::move(id));
    }
    return shielded(executor_, do_release(entry, force, std::move(precondition)));
}

Async<Outcome<Composition>> Core::do_release(EntryPtr entry, bool force, Precondition precondition) {
    const std::shared_ptr<Core> self = shared_from_this();
    std::optional<Problem> refused;
    Change change = [&](Draft& draft) {
        Composition& c = draft.c;
        refused = check_precondition(c, precondition);
        if (!refused && is_end(c.state)) refused = ended_already(c);
        if (refused || (c.release_requested && (c.forced || !force))) return false;
        if (!c.release_requested && c.phase_started == Time{}) c.phase_started = now();
        c.release_requested = true;
        c.forced = c.forced || force;
        for (Part& part : c.parts) {
            if (is_end(part.state)) continue;
            part.forced = part.forced || force;
            if (!part.release_requested) give_back(c, part);
        }
        if (force) {
            Event event;
            event.type = "composition.forced";
            event.composition = c.id;
            event.host = c.host;
            event.detail =
                "its release was forced: it is unbound as a surprise removal, without waiting for the "
                "agent of " +
                c.host.value;
            event.forced = true;
            draft.events.push_back(std::move(event));
        }
        return true;
    };
    const Result<> durable = co_await journal(entry, std::move(change));
    if (refused) co_return std::unexpected(*std::move(refused));
    if (!durable) co_return refuse_for_store(durable.error());
    Composition answer = entry->c;
    for (const auto& [number, job] : entry->jobs) job->kick.notify_all();
    kick(entry);
    co_return answer;
}

// Asks the agent to take it offline.
void Core::begin_drain(Composition& c, Part& part) const {
    end_step(c, part.number, "online", now(), "given up");
    part.state = CompositionState::kDraining;
    part.drain_deadline = now() + config_.timing.drain_deadline;
    begin_step(c, part.number, "drain", now());
}

// --- Looking ---

Outcome<Composition> Core::get(const CompositionId& id) const {
    const EntryPtr entry = find(id);
    if (!entry) return refuse_unknown(id);
    return entry->c;
}

namespace {

bool fits(const Composition& c, const CompositionQuery& query) {
    if (query.host && c.host != *query.host) return false;
    if (query.state && c.state != *query.state) return false;
    if (query.tenant && c.tenant != *query.tenant) return false;
    const auto is_there = [&](const Part& part) {
        return (!query.switch_id || part.where.switch_id == *query.switch_id) &&
               (!query.device || part.memory.device == *query.device);
    };
    if ((query.switch_id || query.device) && std::ranges::none_of(c.parts, is_there)) return false;
    if (!query.label) return true;
    const auto label = c.labels.find(query.label->first);
    return label != c.labels.end() && (!query.label->second || label->second == *query.label->second);
}

}  // namespace

CompositionPage Core::list(const CompositionQuery& query) const {
    // Among a hundred thousand a filter may fit none: a page says so in pieces, and others get their turn.
    constexpr std::size_t kMostLookedAt = 10'000;
    CompositionPage page;
    std::uint64_t last = query.after;
    std::size_t looked_at = 0;
    for (auto it = by_sequence_.upper_bound(query.after); it != by_sequence_.end(); ++it) {
        const Composition& c = it->second->c;
        const bool fitting = fits(c, query);
        if (++looked_at > kMostLookedAt || (fitting && page.items.size() == query.limit)) {
            page.next = last;
            break;
        }
        if (fitting) page.items.push_back(c);
        last = it->first;
    }
    return page;
}

std::vector<TenantStatus> Core::tenants() const {
    std::vector<TenantStatus> result;
    for (const auto& [name, quota] : config_.tenants) result.push_back({name, quota, tenants_.used(name)});
    return result;
}

Async<Outcome<Composition>> Core::wait(CompositionId id, CompositionState state, Milliseconds timeout) {
    const std::shared_ptr<Core> self = shared_from_this();
    const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
    const EntryPtr entry = find(id);
    if (!entry) co_return refuse_unknown(id);
    while (entry->c.state != state && !is_end(entry->c.state)) {
        if (stopping_)
            co_return refuse(problem::kInternalError, "the manager is stopping", ErrorCode::kCancelled);
        if (std::chrono::steady_clock::now() >= deadline) break;
        co_await entry->changed.wait_until(deadline);
        if ((co_await boost::asio::this_coro::cancellation_state).cancelled() !=
            boost::asio::cancellation_type::none)
            co_return refuse(problem::kInternalError, "cancelled", ErrorCode::kCancelled);
    }
    co_return entry->c;
}

}  // namespace memtide::fm

// Growing and shrinking, leases, labels.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/problems.h"
#include "fabric-manager/engine/shrink.h"

namespace memtide::fm {

namespace {

bool can_be_resized(const Composition& c) {
    return c.was_online && !c.release_requested && !c.failed &&
           (c.state == CompositionState::kOnline || c.state == CompositionState::kResizing ||
            c.state == CompositionState::kDegraded || c.state == CompositionState::kOnlining);
}

std::unexpected<Problem> refuse_in_exchange(const Composition& c) {
    return refuse(problem::kExchangeUnderWay,
                  fmt::format("composition {} is shrinking from {} to {} by an exchange; wait until it is "
                              "Online, or ask for {} again to have that undone",
                              c.id.value, format_bytes(c.exchange->size_before), format_bytes(c.size),
                              format_bytes(c.exchange->size_before)),
                  ErrorCode::kConflict);
}

// What is wrong with a size whatever the composition does; not with the one that it has, or goes back to.
Outcome<> check_new_size(const Composition& c, Bytes size) {
    if (size == c.size || (c.exchange && size == c.exchange->size_before)) return {};
    if (size.value == 0)
        return refuse(problem::kSizeZero, "a composition needs a size above 0; release it instead");
    return check_size(size, c.placement);
}

// Refusals that no waiting changes.
bool is_for_good(const Problem& problem) {
    return problem.code == problem::kExceedsCapacity || problem.code == problem::kExceedsLargestDevice;
}

// What the composition goes back to when all that it grows by comes to nothing.
Bytes size_without_growth(const Composition& c) {
    Bytes used;
    Bytes growth;
    for (const Part& part : c.parts) {
        if (!is_lasting(part)) continue;
        if (!is_new(part)) used += part.size;
        if (is_new(part) && !part.replacement) growth += part.size;
    }
    return c.size > growth ? std::max(c.size - growth, used) : used;
}

}  // namespace

// A copy of the composition with another size: parts that have to go are asked back, those that are needed
// are placed but not claimed yet. What the host uses goes only once all that stays is online.
Outcome<Composition> Core::resized(const Composition& before, Bytes size) {
    const Bytes has = lasting_size(before);
    if (before.exchange) {
        Outcome<Plan> ever;
        if (size > has) ever = place(inventory_, request_for_more(before, size - has));
        if (!ever && is_for_good(ever.error())) return std::unexpected(std::move(ever.error()));
        return refuse_in_exchange(before);
    }
    Composition c = before;
    const Shrink shrink = size < has ? choose_shrink(c, has - size) : Shrink{};
    const Bytes missing = size < has ? shrink.excess : size - has;
    std::vector<std::uint32_t> leaving;
    bool comes = missing.value != 0;
    for (Part& part : c.parts) {
        if (!is_lasting(part)) continue;
        const bool goes = shrink.regions.contains(part.region);
        if (goes && is_new(part)) give_back(c, part);
        if (goes && !is_new(part)) leaving.push_back(part.number);
        if (!goes && is_new(part)) comes = true;
    }
    c.size = size;
    if (comes && !leaving.empty()) begin_exchange(c, size_without_growth(before), std::move(leaving));
    if (!comes)
        for (const std::uint32_t number : leaving) give_back(c, *c.part(number));
    if (missing.value == 0) return c;
    const CompositionRequest more{c.host, missing, c.placement, c.tenant, {}, std::nullopt};
    if (Outcome<> fits = check_tenant(config_.tenants, tenants_, more, 0); !fits) {
        if (size < has)
            fits.error().detail += fmt::format(
                "; the composition has both for a while when it shrinks by an exchange. Sizes that need "
                "none: "
                "{}",
                fmt::join(sizes_below(before), ", "));
        return std::unexpected(std::move(fits.error()));
    }
    Outcome<Plan> plan = place(inventory_, request_for_more(c, missing));
    if (!plan && size < has)
        return refuse(
            problem::kCannotShrink,
            fmt::format("composition {} is made of whole LDs, so that it can shrink to {} only with "
                        "{} of other memory in exchange, and there is none: {}. Sizes that need "
                        "none: {}",
                        c.id.value, format_bytes(size), format_bytes(missing), plan.error().detail,
                        fmt::join(sizes_below(before), ", ")),
            ErrorCode::kExhausted);
    if (!plan) return std::unexpected(plan.error());
    const std::uint32_t first = c.next_part;
    add_parts(c, *std::move(plan), now());
    if (c.exchange)
        for (std::uint32_t number = first; number < c.next_part; ++number)
            c.exchange->coming.push_back(number);
    return c;
}

Async<Outcome<Composition>> Core::change(CompositionId id, CompositionChangeRequest request,
                                         Precondition precondition) {
    const EntryPtr entry = find(id);
    if (!entry) {
        auto unknown = [](CompositionId which) -> Async<Outcome<Composition>> {
            co_return refuse_unknown(which);
        };
        return unknown(std::move(id));
    }
    return shielded(executor_, do_change(entry, std::move(request), std::move(precondition)));
}

Async<Outcome<Composition>> Core::do_change(EntryPtr entry, CompositionChangeRequest request,
                                            Precondition precondition) {
    const std::shared_ptr<Core> self = shared_from_this();
    std::optional<Problem> refused;
    std::vector<PartId> claimed;
    Change change = [&](Draft& draft) {
        Composition& c = draft.c;
        // What is wrong with the request comes before what stands in its way now.
        if (request.size)
            if (Outcome<> valid = check_new_size(c, *request.size); !valid) refused = valid.error();
        if (!refused) refused = check_precondition(c, precondition);
        if (!refused && is_end(c.state)) refused = ended_already(c);
        if (refused) return false;
        const bool undone = request.size && c.exchange && *request.size == c.exchange->size_before;
        if (request.size && !can_be_resized(c)) {
            refused = refuse(problem::kNotOnline,
                             fmt::format("composition {} is {}; it can be resized once it has been online",
                                         c.id.value, to_string(c.state)),
                             ErrorCode::kConflict)
                          .error();
            return false;
        }
        if (undone) undo_exchange(draft, Reason{"asked-back", "a client asked for that"});
        if (request.size && *request.size != c.size) {
            forget_ended_parts(entry, c);
            Outcome<Composition> wanted = resized(c, *request.size);
            const Result<> ok = wanted ? inventory_.claim(*wanted) : Result<>();
            if (!wanted) {
                refused = wanted.error();
                return false;
            }
            if (!ok) {
                refused = Problem{
                    std::string(problem::kInternalError), ok.error().message, ErrorCode::kInternal, {}};
                return false;
            }
            for (const Part& part : wanted->parts)
                if (c.part(part.number) == nullptr) claimed.push_back({c.id, part.number});
            if (c.phase_started == Time{}) wanted->phase_started = now();
            c = *std::move(wanted);
            tenants_.hold(c);
        }
        if (request.labels) c.labels = *request.labels;
        if (request.ttl) renew(c, *request.ttl);
        return true;
    };
    const Result<> durable = co_await journal(entry, std::move(change));
    if (refused) co_return std::unexpected(*std::move(refused));
    if (!durable) {
        for (const PartId& id : claimed) inventory_.release(id);
        if (!is_end(entry->c.state)) tenants_.hold(entry->c);
        co_return refuse_for_store(durable.error());
    }
    Composition answer = entry->c;
    for (const auto& [number, job] : entry->jobs) job->kick.notify_all();
    kick(entry);
    co_return answer;
}

// A lease counts from now; without one it stays until it is released.
void Core::renew(Composition& c, std::chrono::seconds ttl) const {
    c.ttl.reset();
    c.expires.reset();
    if (ttl.count() == 0) return;
    c.ttl = ttl;
    c.expires = now() + ttl;
}

// Parts that are over stay to be looked at until the composition changes again.
void Core::forget_ended_parts(const EntryPtr& entry, Composition& c) {
    for (auto it = c.parts.begin(); it != c.parts.end();) {
        const std::uint32_t number = it->number;
        if (!is_end(it->state) || entry->job(number).running) {
            ++it;
            continue;
        }
        it = c.parts.erase(it);
        std::erase_if(c.steps, [&](const Step& step) { return step.part == number; });
    }
}

}  // namespace memtide::fm

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

}  // namespace

// A copy of the composition with another size: parts that have to go are asked back, those that are needed
// are placed but not claimed yet.
Outcome<Composition> Core::resized(const Composition& before, Bytes size) {
    if (!can_be_resized(before))
        return refuse(problem::kNotOnline,
                      fmt::format("composition {} is {}; it can be resized once it has been online",
                                  before.id.value, to_string(before.state)),
                      ErrorCode::kConflict);
    if (size.value == 0)
        return refuse(problem::kSizeZero, "a composition needs a size above 0; release it instead");
    Composition c = before;
    const Bytes has = lasting_size(c);
    Bytes missing = size > has ? size - has : Bytes{};
    if (size < has) {
        const Shrink shrink = choose_shrink(c, has - size);
        for (Part& part : c.parts)
            if (is_lasting(part) && shrink.regions.contains(part.region)) give_back(c, part);
        missing = shrink.excess;
    }
    c.size = size;
    if (missing.value == 0) return c;
    const CompositionRequest more{c.host, missing, c.placement, c.tenant, {}, std::nullopt};
    if (size > has)
        if (Outcome<> fits = check_tenant(config_.tenants, tenants_, more, 0); !fits)
            return std::unexpected(std::move(fits.error()));
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
    add_parts(c, *std::move(plan), now());
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
        refused = check_precondition(c, precondition);
        if (!refused && is_end(c.state)) refused = ended_already(c);
        if (refused) return false;
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

// Shrinks for which other memory has to be online first.
//
// LDs do not shrink, so that a smaller one comes in exchange for a larger one. The host keeps the larger one
// until all that stays is online, and for good when that fails: nothing that a host uses goes for a promise.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace {

constexpr std::string_view kStep = "exchange";

}  // namespace

// What comes are the parts of a growth under way; the caller adds what it places. Replacements come anyway.
void Core::begin_exchange(Composition& c, Bytes size_before, std::vector<std::uint32_t> leaving) const {
    Exchange exchange{size_before, now() + config_.timing.exchange_deadline, std::move(leaving), {}};
    for (const std::uint32_t number : exchange.leaving) begin_step(c, number, kStep, now());
    for (const Part& part : c.parts)
        if (is_lasting(part) && is_new(part) && !part.replacement) exchange.coming.push_back(part.number);
    c.exchange = std::move(exchange);
}

void Core::end_exchange(Composition& c, std::string_view how) const {
    for (const std::uint32_t number : c.exchange->leaving)
        end_step(c, number, kStep, now(), std::string(how));
    c.exchange.reset();
}

void Core::settle_exchange(Composition& c) const {
    if (!c.exchange) return;
    if (c.release_requested || c.failed) return end_exchange(c, "given up");
    std::vector<Part*> leaving;
    Bytes staying;
    bool all_online = true;
    for (Part& part : c.parts) {
        if (!is_lasting(part)) continue;
        if (is_leaving(c, part)) {
            leaving.push_back(&part);
            continue;
        }
        staying += part.size;
        all_online = all_online && part.state == CompositionState::kOnline;
    }
    if (leaving.empty()) return end_exchange(c, "what was to go is lost");
    if (!all_online || staying < c.size) return;
    for (Part* part : leaving) give_back(c, *part);
    end_exchange(c, "done");
}

// What was to leave stays, what was to come goes back, and the size is what it was.
void Core::undo_exchange(Draft& draft, const Reason& why) const {
    Composition& c = draft.c;
    const Exchange exchange = *c.exchange;
    end_exchange(c, fmt::format("undone: {}", why.detail));
    for (const std::uint32_t number : exchange.coming)
        if (Part* part = c.part(number); part != nullptr && is_lasting(*part)) give_back(c, *part);
    Event event;
    event.type = "composition.resize-failed";
    event.composition = c.id;
    event.host = c.host;
    event.code = why.code;
    event.detail = fmt::format("it does not shrink to {}, keeps what was to go, and its size is {} again: {}",
                               format_bytes(c.size), format_bytes(exchange.size_before), why.detail);
    draft.events.push_back(std::move(event));
    c.size = exchange.size_before;
}

// Its switch has bound it, so that it goes back the long way.
Async<Core::Progress> Core::online_refused_step(PartRef ref, Reason reason) {
    return advance(ref, [this, reason = std::move(reason)](Draft& draft) {
        Part& part = draft.part();
        if (part.state != CompositionState::kOnlining || !is_lasting(part) || !draft.c.exchange) return false;
        part.reason = reason;
        end_step(draft.c, part.number, "online", now(), reason.code);
        note_failure(draft);
        give_back(draft.c, draft.part());
        return true;
    });
}

Async<> Core::exchange_overdue(EntryPtr entry, Time deadline) {
    Change change = [this, &entry, deadline](Draft& draft) {
        if (!draft.c.exchange || draft.c.exchange->deadline != deadline) return false;
        std::string waiting = waiting_for(entry->c);
        undo_exchange(draft, Reason{"exchange-overdue",
                                    fmt::format("what comes in exchange is not online in time{}",
                                                waiting.empty() ? "" : "; it waits for " + waiting)});
        return true;
    };
    while (!stopping_) {
        const Result<> durable = co_await journal(entry, change);
        if (durable) break;
        co_await pause_us(config_.timing.retry_max);
    }
    for (const auto& [number, job] : entry->jobs) job->kick.notify_all();
    kick(entry);
}

}  // namespace memtide::fm

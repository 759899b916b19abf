// Events and their subscribers.
#include <algorithm>
#include <array>
#include <string_view>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"

namespace memtide::fm {

namespace {
constexpr std::size_t kRecentEvents = 4096;  // served from memory
constexpr std::uint64_t kTrimBatch = 1024;

// What an operator should look at.
constexpr std::array<std::string_view, 7> kWarnings{
    "store.damaged",  "switch.down",  "device.unreadable",        "device.removed",
    "ld.quarantined", "host.refused", "composition.drain-overdue"};

void log_event(const Event& event) {
    const auto text = [](const auto& id) { return id ? id->value : std::string(); };
    const bool warns = std::ranges::find(kWarnings, event.type) != kWarnings.end();
    if (!log::is_enabled(warns ? log::Level::kWarning : log::Level::kInfo)) return;
    const auto say = warns ? &log::warning : &log::info;
    say(event.type, {{"host", text(event.host)},
                     {"switch", text(event.switch_id)},
                     {"device", text(event.device)},
                     {"composition", text(event.composition)},
                     {"code", event.code},
                     {"detail", event.detail}});
}

}  // namespace

Event Core::state_event(const Draft& draft) {
    const Composition& c = draft.c;
    Event event;
    event.time = c.updated;
    event.type = "composition.state";
    event.composition = c.id;
    event.host = c.host;
    if (const Part* part = draft.c.part(draft.number)) {
        event.switch_id = part->where.switch_id;
        event.device = part->memory.device;
    }
    event.state = std::string(to_string(c.state));
    event.code = draft.code;
    event.detail = draft.detail;
    event.forced = c.forced;
    if (c.reason && event.code.empty()) {
        event.code = c.reason->code;
        event.detail = c.reason->detail;
    }
    return event;
}

void Core::emit(Event event) {
    if (stopping_) return;
    event.time = now();
    log_event(event);
    auto write = [](std::shared_ptr<Core> self, Event what) -> Async<> {
        Mutation mutation;
        mutation.events.push_back(std::move(what));
        const Result<> ok = co_await self->apply(std::move(mutation));
        if (!ok) log::warning("an event could not be kept", {{"error", ok.error()}});
    };
    spawn(write(shared_from_this(), std::move(event)));
}

void Core::show_events(const std::vector<Event>& events) {
    if (events.empty()) return;
    for (const Event& event : events) {
        recent_.push_back(event);
        published_event_ = event.id;
    }
    while (recent_.size() > kRecentEvents) recent_.pop_front();
    event_added_.notify_all();
}

void Core::trim_events(Mutation& mutation) {
    if (next_event_ < oldest_event_ + config_.keep_events + kTrimBatch) return;
    mutation.forget_events_up_to = next_event_ - config_.keep_events;
    oldest_event_ = *mutation.forget_events_up_to + 1;
}

Async<Outcome<std::vector<Event>>> Core::events(std::uint64_t after, std::size_t limit,
                                                Milliseconds timeout) {
    const std::shared_ptr<Core> self = shared_from_this();
    const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
    // An id from before the state file was made anew: everything is new to the subscriber.
    if (after > published_event_) after = 0;
    while (published_event_ <= after) {
        if (stopping_)
            co_return refuse(problem::kInternalError, "the manager is stopping", ErrorCode::kCancelled);
        if (std::chrono::steady_clock::now() >= deadline) co_return std::vector<Event>();
        co_await event_added_.wait_until(deadline);
        if ((co_await boost::asio::this_coro::cancellation_state).cancelled() !=
            boost::asio::cancellation_type::none)
            co_return refuse(problem::kInternalError, "cancelled", ErrorCode::kCancelled);
    }
    if (!recent_.empty() && recent_.front().id <= after + 1) {
        const auto first = std::ranges::upper_bound(recent_, after, {}, &Event::id);
        const auto count = std::min(limit, static_cast<std::size_t>(recent_.end() - first));
        co_return std::vector<Event>(first, first + static_cast<std::ptrdiff_t>(count));
    }
    EventQuery query{.after = after, .limit = limit, .composition = std::nullopt};
    Result<std::vector<Event>> answer = co_await read_events(std::move(query));
    if (!answer) co_return refuse(problem::kInternalError, answer.error().message, answer.error().code);
    co_return *std::move(answer);
}

}  // namespace memtide::fm

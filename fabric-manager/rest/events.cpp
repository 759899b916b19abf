// Server-sent events (WHATWG HTML, 9.2): resumable with Last-Event-ID, also after a restart of the manager.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/json/write.h"
#include "fabric-manager/engine/async.h"
#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

// A batch bounds what one slow client holds in memory: the next one is fetched when it has been written.
constexpr std::size_t kBatch = 100;

// What a subscriber wants to hear.
struct Subscription {
    std::uint64_t after = 0;  // the last event it has seen
    bool follow = true;
    std::optional<std::string> type;
    std::optional<std::string> composition;
    std::optional<std::string> host;
    std::shared_ptr<const http::Caller> caller;
    [[nodiscard]] const Principal& principal() const {
        const auto* const known = dynamic_cast<const Principal*>(caller.get());
        return known != nullptr ? *known : *anonymous_principal();
    }
};

// The id that the stream begins after: Last-Event-ID of a client that comes back, ?after= of one that wants
// the past, else only what is new.
Outcome<Subscription> start_of(const Context& context, const http::Request& request) {
    Subscription result;
    const auto after = number(request, "after");
    if (!after) return std::unexpected(after.error());
    result.after = after->value_or(context.manager.last_event());
    if (const auto given = request.header("Last-Event-ID"); given && !given->empty()) {
        const auto id = parse_number(*given);
        if (!id)
            return refuse(problem::kInvalidRequest,
                          fmt::format("Last-Event-ID is \"{}\"; it must be the id of an event", *given));
        result.after = *id;
    }
    return result;
}

Outcome<Subscription> subscription(const Context& context, const http::Request& request) {
    auto result = start_of(context, request);
    if (!result) return result;
    const auto follow = choice(request, "follow");
    if (!follow) return std::unexpected(follow.error());
    result->follow = follow->value_or(true);
    const auto wanted = [&](std::string_view name) -> std::optional<std::string> {
        const auto value = request.query_value(name);
        return value ? std::optional<std::string>(*value) : std::nullopt;
    };
    result->type = wanted("type");
    result->composition = wanted("composition");
    result->host = wanted("host");
    result->caller = request.caller;
    return result;
}

// "composition.state", or "composition" for all that begin with "composition.".
bool is_of_type(const Event& event, const std::string& type) {
    return event.type == type || (event.type.starts_with(type) && event.type[type.size()] == '.');
}

bool fits(const Event& event, const Subscription& wanted) {
    if (wanted.type && !is_of_type(event, *wanted.type)) return false;
    if (wanted.composition && (!event.composition || event.composition->value != *wanted.composition))
        return false;
    return !wanted.host || (event.host && event.host->value == *wanted.host);
}

std::string as_text(const Event& event) {
    return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.type, json::write(to_json(event)));
}

// A tenant sees what happens to its own compositions.
bool may_see(const Context& context, const Principal& caller, const Event& event) {
    if (!caller.is_tenant()) return true;
    if (!event.composition) return false;
    const auto composition = context.manager.get(*event.composition);
    return composition && caller.sees(*composition);
}

// Says that the subscriber has missed something for good, and moves it on to what is kept. Whoever keeps a
// picture of the fabric by events has to get it anew.
std::optional<Event> gap(const Context& context, Subscription& at) {
    const std::uint64_t newest = context.manager.last_event();
    const std::uint64_t oldest = context.manager.oldest_event();
    Event event;
    event.time = std::chrono::system_clock::now();
    event.type = "gap";
    if (at.after > newest) {
        event.code = "unknown-event";
        event.detail = fmt::format(
            "there has been no event {}: the newest is {}, so the state file is another one than then; what "
            "is kept follows",
            at.after, newest);
        at.after = 0;
    } else if (at.after > 0 && at.after + 1 < oldest) {
        event.code = "events-forgotten";
        event.detail =
            fmt::format("events {} to {} are not kept any more (limits: events)", at.after + 1, oldest - 1);
        at.after = oldest - 1;
    } else {
        return std::nullopt;
    }
    event.id = at.after;
    return event;
}

// What is sent when there is nothing to tell. Events that the subscriber did not want move its id on all the
// same, or it would come back with one that is not kept any more.
std::string quiet(std::uint64_t seen, std::uint64_t told) {
    if (seen == told) return ": heartbeat\n\n";
    return fmt::format(": heartbeat\nid: {}\n\n", seen);
}

// Without `follow` the stream ends behind the newest event. It also ends once its caller would not be let in
// any more: its token was revoked, or has expired.
boost::asio::awaitable<void> stream(Context& context, Subscription at, http::StreamWriter& writer) {
    // Sends the header on its way, so that the client knows it is heard.
    if (!co_await writer.write("retry: 2000\n: events follow\n\n")) co_return;
    const Milliseconds heartbeat = context.options.heartbeat;
    SteadyTime spoken = std::chrono::steady_clock::now();
    std::uint64_t told = at.after;  // the last id that the subscriber knows of
    for (;;) {
        std::string text;
        if (const auto missed = gap(context, at)) text = as_text(*missed);
        const Milliseconds patience = at.follow && text.empty() ? heartbeat : Milliseconds(0);
        const auto events = co_await context.manager.events(at.after, kBatch, patience);
        if (!events) co_return;
        if (context.options.gate != nullptr && !context.options.gate->is_still_valid(at.principal()))
            co_return;
        if (events->empty() && text.empty() && !at.follow) co_return;
        if (!events->empty()) at.after = events->back().id;
        for (const Event& event : *events)
            if (fits(event, at) && may_see(context, at.principal(), event)) text += as_text(event);
        if (!text.empty())
            told = at.after;
        else if (std::chrono::steady_clock::now() - spoken >= heartbeat)
            text = quiet(at.after, std::exchange(told, at.after));
        else
            continue;  // none of them is for this subscriber
        const auto written = co_await writer.write(std::move(text));
        if (!written) co_return;
        spoken = std::chrono::steady_clock::now();
    }
}

}  // namespace

Answer stream_events(Context& context, http::Request request) {
    auto wanted = subscription(context, request);
    if (!wanted) co_return answer(wanted.error());
    http::Response response;
    response.headers["Content-Type"] = "text/event-stream";
    response.headers["Cache-Control"] = "no-store";
    response.stream = [&context, start = *std::move(wanted)](http::StreamWriter& writer) {
        return stream(context, start, writer);
    };
    co_return response;
}

}  // namespace memtide::fm

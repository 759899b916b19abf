// Server-sent events (WHATWG HTML, 9.2): resumable with Last-Event-ID, also after a restart of the manager.
#include <algorithm>
#include <utility>

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

// A batch bounds what one slow client holds in memory.
constexpr std::size_t kBatch = 100;

// The id that the stream begins after: Last-Event-ID of a client that comes back, ?after= of one that wants
// the past, else only what is new.
Outcome<std::uint64_t> start_of(const Context& context, const http::Request& request) {
    const std::uint64_t newest = context.manager.last_event();
    if (const auto given = request.header("Last-Event-ID"); given && !given->empty()) {
        const auto id = parse_number(*given);
        if (!id)
            return refuse(problem::kInvalidRequest,
                          fmt::format("Last-Event-ID is \"{}\"; it must be the id of an event", *given));
        return std::min(*id, newest);
    }
    const auto after = number(request, "after");
    if (!after) return std::unexpected(after.error());
    return std::min(after->value_or(newest), newest);
}

// A tenant sees what happens to its own compositions.
bool may_see(const Context& context, const Principal& caller, const Event& event) {
    if (!caller.is_tenant()) return true;
    const auto composition = event.composition ? context.manager.get(*event.composition)
                                               : Outcome<Composition>(refuse(problem::kNotFound, ""));
    return composition && caller.sees(*composition);
}

std::string as_text(const Context& context, const Principal& caller, const std::vector<Event>& events) {
    std::string text;
    for (const Event& event : events)
        if (may_see(context, caller, event))
            text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.type,
                                boost::json::serialize(to_json(event)));
    return text;
}

// Without `follow` the stream ends behind the newest event. It also ends once its caller would not be let in
// any more: its token was revoked, or has expired.
boost::asio::awaitable<void> stream(Context& context, std::shared_ptr<const http::Caller> who,
                                    std::uint64_t after, bool follow, http::StreamWriter& writer) {
    const auto* const known = dynamic_cast<const Principal*>(who.get());
    const Principal& caller = known != nullptr ? *known : *anonymous_principal();
    // Sends the header on its way, so that the client knows it is heard.
    if (!co_await writer.write("retry: 2000\n: events follow\n\n")) co_return;
    const Milliseconds patience = follow ? Milliseconds(context.options.heartbeat) : Milliseconds(0);
    auto written_at = std::chrono::steady_clock::now();
    for (;;) {
        const auto events = co_await context.manager.events(after, kBatch, patience);
        if (!events || (events->empty() && !follow)) co_return;
        if (context.options.gate != nullptr && !context.options.gate->is_still_valid(caller)) co_return;
        if (!events->empty()) after = events->back().id;
        std::string text = as_text(context, caller, *events);
        if (text.empty() && !events->empty() && std::chrono::steady_clock::now() - written_at < patience)
            continue;
        if (text.empty()) text = ": heartbeat\n\n";
        written_at = std::chrono::steady_clock::now();
        const auto written = co_await writer.write(std::move(text));
        if (!written) co_return;
    }
}

}  // namespace

Answer stream_events(Context& context, http::Request request) {
    const auto after = start_of(context, request);
    if (!after) co_return answer(after.error());
    const auto follow = request.query_value("follow") ? flag(request, "follow") : Outcome<bool>(true);
    if (!follow) co_return answer(follow.error());
    http::Response response;
    response.headers["Content-Type"] = "text/event-stream";
    response.headers["Cache-Control"] = "no-store";
    response.stream = [&context, who = request.caller, start = *after, follow = *follow](
                          http::StreamWriter& writer) { return stream(context, who, start, follow, writer); };
    co_return response;
}

}  // namespace memtide::fm

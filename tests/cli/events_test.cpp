// Events and histories through the real program.
#include "cli/render/events.h"

#include <atomic>
#include <string>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

http::Response stream_of(std::string body) {
    http::Response response;
    response.headers["Content-Type"] = "text/event-stream";
    response.body = std::move(body);
    return response;
}

std::string event(int id) {
    const std::string number = std::to_string(id);
    return "id: " + number + "\nevent: switch.up\ndata: {\"id\": " + number +
           ", \"type\": \"switch.up\", \"time\": \"t" + number + "\"}\n\n";
}

TEST(EventsCommand, ReconnectsAndResumesBehindWhatItHasSeenWithItsFilters) {
    std::atomic<int> calls{0};
    ScriptedManager manager([&](const http::Request& request) {
        EXPECT_EQ(request.query_value("follow"), "true");
        EXPECT_EQ(request.query_value("type"), "switch");
        EXPECT_EQ(request.query_value("host"), "a&b");
        const int call = calls++;
        // The stream ends; its last id came without an event, since none fitted.
        if (call == 0) {
            EXPECT_EQ(request.query_value("after"), "6");
            return stream_of("retry: 2000\n\n" + event(7) + ": heartbeat\nid: 9\n\n");
        }
        EXPECT_EQ(request.query_value("after"), call == 1 ? "9" : "12");
        return stream_of(event(10) + event(11) + event(12));
    });
    const auto output = memtide_in_shell(
        manager.url(), {"events", "--follow", "--since", "6", "--type", "switch", "--host", "a&b"},
        "\"$@\" | head -n 3");
    EXPECT_NE(output.standard_output.find("t7"), std::string::npos) << output.standard_error;
    EXPECT_NE(output.standard_output.find("t11"), std::string::npos) << output.standard_output;
    EXPECT_GE(calls, 2);
}

TEST(EventsCommand, WithJsonEachEventIsALine) {
    ScriptedManager manager([&](const http::Request&) { return stream_of(event(7) + event(8)); });
    const auto output = memtide(manager.url(), {"--json", "events"});
    EXPECT_EQ(output.standard_output,
              "{\"id\":7,\"type\":\"switch.up\",\"time\":\"t7\"}\n"
              "{\"id\":8,\"type\":\"switch.up\",\"time\":\"t8\"}\n");
}

TEST(EventsCommand, EachLineBeginsWithTheIdThatSinceTakes) {
    ScriptedManager manager([&](const http::Request&) { return stream_of(event(7)); });
    EXPECT_TRUE(memtide(manager.url(), {"events"}).standard_output.starts_with("     7  t7  switch.up"));
}

TEST(HistoryCommand, TakesAllPagesAndPutsStepsAndEventsInOrder) {
    ScriptedManager manager([&](const http::Request& request) {
        EXPECT_EQ(request.path, "/v1/compositions/c-1/history");
        const bool first = !request.query_value("page");
        return http::json_response(
            200, std::string(R"({"composition": "c-1", "state": "Online", "complete": true,
            "steps": [{"step": "bind", "started": "2026-01-01T00:00:02.000Z", "duration_ms": 1.5, "detail": "", "part": 3}],
            "items": [)") +
                     (first ? R"({"time": "2026-01-01T00:00:01.000Z", "state": "Pending"}], "next": "4"})"
                            : R"({"time": "2026-01-01T00:00:03.000Z", "state": "Online"}], "next": null})"));
    });
    const auto output = memtide(manager.url(), {"history", "c-1"});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    const std::string& text = output.standard_output;
    const auto pending = text.find("Pending");
    const auto bind = text.find("step bind");
    const auto online = text.find("Online");
    ASSERT_NE(online, std::string::npos) << text;
    EXPECT_LT(pending, bind) << text;
    EXPECT_LT(bind, online) << text;
    EXPECT_NE(text.find("3  1.5 ms"), std::string::npos) << text;  // the part, and how long it took
    const auto json = memtide(manager.url(), {"--json", "history", "c-1"});
    EXPECT_EQ(boost::json::parse(json.standard_output).at("items").as_array().size(), 2U);
}

TEST(HistoryCommand, SaysWhenItsBeginningIsNotKeptAnyMore) {
    const auto history = boost::json::parse(R"({"steps": [], "items": [], "complete": false})");
    EXPECT_NE(render_history(history).find("not kept any more"), std::string::npos);
}

}  // namespace
}  // namespace memtide::cli

// Where answers and failures go, and what comes of it when they do not get there.
#include <array>
#include <chrono>
#include <string>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/parse.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

constexpr const char* kPool = R"({"capacity": 1073741824, "free": 268435456, "devices": []})";
constexpr const char* kEvent =
    "id: 7\nevent: switch.up\ndata: {\"id\": 7, \"type\": \"switch.up\", \"switch\": \"switch0\"}\n\n";

ScriptedManager::Answer answers(const char* body) {
    return [body](const http::Request&) { return http::json_response(200, body); };
}

// One event, and then none for a long time.
boost::asio::awaitable<void> one_event(http::StreamWriter& writer) {
    if (!co_await writer.write(kEvent)) co_return;
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, std::chrono::minutes(5));
    co_await timer.async_wait(boost::asio::use_awaitable);
}

http::Response one_event_and_silence(const http::Request&) {
    http::Response response;
    response.headers["Content-Type"] = "text/event-stream";
    response.stream = one_event;
    return response;
}

TEST(Output, AnswersThatCannotBeWrittenAreAFailure) {
    ScriptedManager manager(answers(kPool));
    for (const char* line : {"\"$@\" >/dev/full", "\"$@\" --json >/dev/full", "\"$@\" >&-"}) {
        const auto output = memtide_in_shell(manager.url(), {"pool"}, line);
        EXPECT_EQ(output.exit.code, 1) << line;
        EXPECT_NE(output.standard_error.find("standard output"), std::string::npos) << line;
    }
    EXPECT_EQ(memtide_in_shell("", {"--help"}, "\"$@\" >/dev/full").exit.code, 1);
}

TEST(Output, AReaderThatHasSeenEnoughIsNoFailure) {
    std::string many;
    for (int i = 0; i < 20'000; ++i) many += (i ? "," : "") + std::string(R"({"name": "host0"})");
    const std::string body = "{\"items\": [" + many + "], \"next\": null}";
    ScriptedManager manager([&](const http::Request&) { return http::json_response(200, body); });
    const auto output =
        memtide_in_shell(manager.url(), {"hosts"}, "{ \"$@\"; echo \"rc $?\" >&2; } | head -n 1");
    EXPECT_EQ(output.standard_error, "rc 0\n");
    EXPECT_TRUE(output.standard_output.starts_with("HOST")) << output.standard_output;
}

TEST(Output, EventsThatCannotBeWrittenEndTheFollowing) {
    ScriptedManager manager(one_event_and_silence);
    const auto output = memtide_in_shell(manager.url(), {"events", "--follow"}, "\"$@\" >/dev/full");
    EXPECT_EQ(output.exit.code, 1);
}

TEST(Output, EachEventComesThroughAPipeAtOnce) {
    ScriptedManager manager(one_event_and_silence);
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    process::Command command = memtide_command(manager.url(), {"events", "--follow"});
    command.standard_output = process::Stream::from_fd(pipe[1]);
    auto child = process::Child::spawn(command);
    ASSERT_TRUE(child);
    ::close(pipe[1]);
    pollfd readable{pipe[0], POLLIN, 0};
    ASSERT_EQ(::poll(&readable, 1, 20'000), 1) << "the event is kept back";
    std::array<char, 256> text{};
    EXPECT_GT(::read(pipe[0], text.data(), text.size() - 1), 0);
    EXPECT_NE(std::string(text.data()).find("switch.up"), std::string::npos) << text.data();
    ::close(pipe[0]);
}

TEST(Output, WhatDidNotComeAboutIsSaidLast) {
    ScriptedManager manager([](const http::Request& request) {
        return http::json_response(request.method == "POST" ? 202 : 200, composition("Onlining"));
    });
    const auto output =
        memtide_in_shell(manager.url(), {"compose", "host0", "256MiB", "--timeout", "1"}, "\"$@\" 2>&1");
    EXPECT_EQ(output.exit.code, 1);
    const auto table = output.standard_output.find("id                c-1");
    const auto error = output.standard_output.find("memtide: c-1 is still Onlining");
    EXPECT_NE(table, std::string::npos) << output.standard_output;
    EXPECT_NE(error, std::string::npos) << output.standard_output;
    EXPECT_LT(table, error) << output.standard_output;
}

TEST(Output, WithJsonARefusalIsItsProblemDocument) {
    ScriptedManager manager(
        [](const http::Request&) { return http::problem(409, "exceeds-free", "256MiB are free"); });
    const auto output = memtide(manager.url(), {"--json", "compose", "host0", "1GiB"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_EQ(output.standard_error, "memtide: 256MiB are free (exceeds-free)\n");
    const auto problem = boost::json::parse(output.standard_output);
    EXPECT_EQ(problem.at("code").as_string(), "exceeds-free");
    EXPECT_EQ(problem.at("detail").as_string(), "256MiB are free");
    EXPECT_EQ(problem.at("status").to_number<int>(), 409);
}

TEST(Output, WithJsonAManagerThatIsDownIsAProblemDocumentToo) {
    const auto output = memtide("http://127.0.0.1:1", {"--json", "pool"});
    EXPECT_EQ(output.exit.code, 1);
    const auto problem = boost::json::parse(output.standard_output);
    EXPECT_EQ(problem.at("code").as_string(), "unreachable");
    EXPECT_TRUE(problem.at("detail").as_string().starts_with("no answer from a fabric manager"));
    EXPECT_TRUE(problem.at("status").is_null());
    EXPECT_TRUE(output.standard_error.starts_with("memtide: no answer")) << output.standard_error;
}

}  // namespace
}  // namespace memtide::cli

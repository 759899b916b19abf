// Responses that are written bit by bit: server-sent events.
#include <stdexcept>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/common/http/serving.h"

namespace memtide::http {
namespace {

namespace asio = boost::asio;

Router stream_router(std::function<asio::awaitable<void>(StreamWriter&)> stream) {
    Router router;
    router.add("GET", "/events", [stream](Request) -> asio::awaitable<Response> {
        Response response;
        response.headers["Content-Type"] = "text/event-stream";
        response.stream = stream;
        co_return response;
    });
    return router;
}

asio::awaitable<void> three(StreamWriter& writer) {
    for (const char* piece : {"one\n", "", "two\n", "three\n"})
        if (!co_await writer.write(piece)) co_return;
}

asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
}

TEST(Stream, IsChunkedAndTheConnectionGoesOn) {
    Serving serving(stream_router(three));
    Raw raw(serving.port());
    raw.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_NE(
        raw.read_until("\r\n0\r\n\r\n").find("\r\n\r\n4\r\none\n\r\n4\r\ntwo\n\r\n6\r\nthree\n\r\n0\r\n\r\n"),
        std::string::npos);
    raw.send("HEAD /events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(raw.read_to_end().ends_with("\r\n\r\n"));
}

TEST(Stream, EndsWithTheConnectionForHttp10) {
    Serving serving(stream_router(three));
    Raw raw(serving.port());
    raw.send("GET /events HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(raw.read_to_end().ends_with("\r\n\r\none\ntwo\nthree\n"));
}

TEST(Stream, WriterStopsSoonAfterTheClientVanished) {
    std::atomic<bool> ended = false;
    Serving serving(stream_router([&ended](StreamWriter& writer) -> asio::awaitable<void> {
        while (co_await writer.write("tick\n")) co_await pause(5ms);
        ended = true;
    }));
    Raw raw(serving.port());
    raw.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    raw.read_until("tick");
    raw.close();
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(Stream, WriterThatWaitsIsCancelledWhenTheClientVanishes) {
    Serving serving(stream_router([](StreamWriter& writer) -> asio::awaitable<void> {
        if (!co_await writer.write("hello\n")) co_return;
        co_await pause(10min);
    }));
    Raw raw(serving.port());
    raw.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    raw.read_until("hello");
    raw.close();
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(Stream, IsEndedByStop) {
    Serving serving(stream_router([](StreamWriter& writer) -> asio::awaitable<void> {
        if (!co_await writer.write("hello\n")) co_return;
        co_await pause(10min);
    }));
    Raw raw(serving.port());
    raw.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    raw.read_until("hello");
    ASSERT_EQ(serving.stop(60s).wait_for(kPatience), std::future_status::ready);
    raw.read_to_end();
}

TEST(Stream, ThatFailsDoesNotLookComplete) {
    Serving serving(stream_router([](StreamWriter& writer) -> asio::awaitable<void> {
        co_await writer.write("half");
        throw std::runtime_error("no more");
    }));
    Raw raw(serving.port());
    raw.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(raw.read_to_end().ends_with("4\r\nhalf\r\n"));
}

TEST(Stream, ToAClientThatDoesNotReadIsDropped) {
    ServerLimits limits;
    limits.write_timeout = 200ms;
    Serving serving(stream_router([](StreamWriter& writer) -> asio::awaitable<void> {
                        while (co_await writer.write(std::string(1 << 20, 'x'))) {
                        }
                    }),
                    limits);
    Raw raw(serving.port());
    raw.set_receive_buffer(4096);
    raw.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return serving.connection_count() == 1; }));
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

}  // namespace
}  // namespace memtide::http

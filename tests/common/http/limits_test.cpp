// Clients that are too much, too slow, too many, or gone.
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/resource.h>

#include "tests/common/http/serving.h"

namespace memtide::http {
namespace {

constexpr std::string_view kGet = "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(ServerLimits, TenMegabyteBodyGets413EvenThoughTheClientIsStillSending) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    std::thread sender([&raw] {
        raw.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10485760\r\n\r\n");
        raw.send(std::string(10 << 20, 'x'));
    });
    const std::string answer = raw.read_until("body-too-large");
    sender.join();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
    EXPECT_EQ(get(serving.url(), "/echo")->status, 200U);
}

TEST(ServerLimits, ChunkedBodyOverTheLimitGets413) {
    ServerLimits limits;
    limits.body_bytes = 1000;
    Serving serving(echo_router(), limits);
    Raw raw(serving.port());
    raw.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 11; ++i) raw.send("64\r\n" + std::string(100, 'x') + "\r\n");
    EXPECT_NE(raw.read_to_end().find("body-too-large"), std::string::npos);
}

TEST(ServerLimits, BodyOfExactlyTheLimitIsServed) {
    ServerLimits limits;
    limits.body_bytes = 200'000;
    Serving serving(echo_router(), limits);
    ClientRequest request;
    request.method = "PUT";
    request.target = "/echo";
    request.body = std::string(200'000, 'x');
    const auto response = exchange(serving.url(), request);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "PUT /echo " + request.body);
}

TEST(ServerLimits, HeaderFloodGets431) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("GET /echo HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 2000; ++i)
        if (!raw.send("X-Flood-" + std::to_string(i) + ": value\r\n")) break;
    const std::string answer = raw.read_until("headers-too-large");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 431 ")) << answer;
}

TEST(ServerLimits, EndlessRequestLineGets431) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("GET /" + std::string(100'000, 'x'));
    EXPECT_TRUE(raw.read_until("headers-too-large").starts_with("HTTP/1.1 431 "));
}

TEST(ServerLimits, EndlessChunkExtensionIsRefused) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;");
    raw.send(std::string(100'000, 'x'));
    EXPECT_TRUE(raw.read_until("}").starts_with("HTTP/1.1 4"));
}

TEST(ServerLimits, SlowClientThatDripsItsHeaderGets408WhileOthersAreServed) {
    ServerLimits limits;
    limits.request_timeout = 400ms;
    Serving serving(echo_router(), limits);
    Raw slow(serving.port());
    const auto begin = std::chrono::steady_clock::now();
    slow.send("GET /echo HTTP/1.1\r\nX: ");
    while (!slow.wait_readable(20ms) && std::chrono::steady_clock::now() - begin < kPatience) slow.send("a");
    EXPECT_TRUE(slow.read_until("request-timeout").starts_with("HTTP/1.1 408 "));
    EXPECT_EQ(get(serving.url(), "/echo")->status, 200U);
}

TEST(ServerLimits, SlowClientThatDripsItsBodyGets408) {
    ServerLimits limits;
    limits.request_timeout = 400ms;
    Serving serving(echo_router(), limits);
    Raw slow(serving.port());
    const auto begin = std::chrono::steady_clock::now();
    slow.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    while (!slow.wait_readable(20ms) && std::chrono::steady_clock::now() - begin < kPatience) slow.send("a");
    EXPECT_TRUE(slow.read_until("request-timeout").starts_with("HTTP/1.1 408 "));
}

TEST(ServerLimits, ClientThatSaysNothingIsClosed) {
    ServerLimits limits;
    limits.request_timeout = 100ms;
    Serving serving(echo_router(), limits);
    Raw mute(serving.port());
    EXPECT_EQ(mute.read_to_end(), "");
}

TEST(ServerLimits, KeptConnectionIsClosedAfterTheIdleTimeout) {
    ServerLimits limits;
    limits.idle_timeout = 100ms;
    Serving serving(echo_router(), limits);
    Raw raw(serving.port());
    raw.send(kGet);
    EXPECT_TRUE(raw.read_to_end().ends_with("GET /echo "));
}

TEST(ServerLimits, ClientThatDoesNotReadIsDropped) {
    ServerLimits limits;
    limits.write_timeout = 200ms;
    Router router;
    router.add("GET", "/large", [](Request) -> boost::asio::awaitable<Response> {
        Response response;
        response.body = std::string(64 << 20, 'x');
        co_return response;
    });
    Serving serving(std::move(router), limits);
    Raw raw(serving.port());
    raw.set_receive_buffer(4096);
    raw.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return serving.connection_count() == 1; }));
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(ServerLimits, ThousandIdleConnectionsAreBoundedAndOthersAreStillServed) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    ServerLimits limits;
    limits.connections = 1100;
    limits.request_timeout = 60s;
    Serving serving(echo_router(), limits);
    std::vector<Raw> idle;
    for (int i = 0; i < 1000; ++i) idle.emplace_back(serving.port());
    ASSERT_TRUE(eventually([&] { return serving.connection_count() == 1000; }));
    EXPECT_EQ(get(serving.url(), "/echo")->status, 200U);
    for (auto& raw : idle) raw.close();
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(ServerLimits, ConnectionOverTheLimitGets503) {
    ServerLimits limits;
    limits.connections = 2;
    Router router;
    std::atomic<int> entered = 0;
    router.add("GET", "/wait", [&entered](Request) -> boost::asio::awaitable<Response> {
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, 10min);
        ++entered;
        co_await timer.async_wait(boost::asio::use_awaitable);
        co_return Response{};
    });
    Serving serving(std::move(router), limits);
    Raw first(serving.port());
    Raw second(serving.port());
    for (Raw* raw : {&first, &second}) raw->send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return entered == 2; }));
    Raw third(serving.port());
    third.send(kGet);
    const std::string answer = third.read_to_end();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
    EXPECT_NE(answer.find("too-many-connections"), std::string::npos) << answer;
    EXPECT_EQ(serving.connection_count(), 2U);
}

TEST(ServerLimits, IdleConnectionGivesWayToANewcomer) {
    ServerLimits limits;
    limits.connections = 2;
    limits.request_timeout = 60s;
    Serving serving(echo_router(), limits);
    Raw first(serving.port());
    Raw second(serving.port());
    ASSERT_TRUE(eventually([&] { return serving.connection_count() == 2; }));
    EXPECT_TRUE(eventually([&] {
        const auto response = get(serving.url(), "/echo");
        return response && response->status == 200;
    }));
}

// Takes every descriptor this process may have but `free`.
class FewDescriptors {
  public:
    explicit FewDescriptors(std::size_t free) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit low = before_;
        low.rlim_cur = 256;
        ::setrlimit(RLIMIT_NOFILE, &low);
        for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken_.push_back(fd);
        for (; free > 0 && !taken_.empty(); --free, taken_.pop_back()) ::close(taken_.back());
    }
    ~FewDescriptors() {
        for (const int fd : taken_) ::close(fd);
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

  private:
    rlimit before_{};
    std::vector<int> taken_;
};

TEST(ServerLimits, OutOfDescriptorsAClientIsToldSoAndTheServerGoesOnWhenThereAreSomeAgain) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "UBSan's checks of object types open a pipe, and take a failure for a finding";
#endif
    Serving serving(echo_router());
    std::vector<Raw> held;
    // One is answered first, so that the server has opened by then all that it keeps open.
    held.emplace_back(serving.port());
    held.back().send(kGet);
    held.back().read_until("GET /echo ");
    {
        const FewDescriptors few(1);  // enough for the client's end of a connection, not for the server's
        held.emplace_back(serving.port());
        held.back().send(kGet);
        held.back().read_until("too-many-connections");
    }
    held.emplace_back(serving.port());
    held.back().send(kGet);
    held.back().read_until("GET /echo ");
}

// --- Clients that vanish ---

// How many handlers are inside, and how many of those were unwound by cancellation.
struct LongPoll {
    std::atomic<int> inside = 0;
    std::atomic<int> entered = 0;
    Router router(const std::string& method) {
        Router result;
        result.add(method, "/poll", [this](Request) -> boost::asio::awaitable<Response> {
            struct Inside {
                std::atomic<int>& count;
                explicit Inside(std::atomic<int>& counted) : count(counted) { ++count; }
                Inside(const Inside&) = delete;
                Inside& operator=(const Inside&) = delete;
                ~Inside() { --count; }
            };
            const Inside guard(inside);
            ++entered;
            boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, wait.load());
            co_await timer.async_wait(boost::asio::use_awaitable);
            ++finished;
            co_return Response{};
        });
        return result;
    }
    std::atomic<std::chrono::milliseconds> wait{10min};
    std::atomic<int> finished = 0;
};

TEST(ServerClients, LongPollOfAClientThatVanishesIsCancelled) {
    LongPoll poll;
    Serving serving(poll.router("GET"));
    for (int i = 0; i < 20; ++i) {
        Raw raw(serving.port());
        raw.send("GET /poll HTTP/1.1\r\nHost: a\r\n\r\n");
        ASSERT_TRUE(eventually([&] { return poll.entered == i + 1; }));
        if (i % 2 == 0) raw.reset();
    }
    EXPECT_TRUE(eventually([&] { return poll.inside == 0; }));
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
    EXPECT_EQ(poll.finished, 0);
}

TEST(ServerClients, HandlerThatChangesThingsRunsToItsEndAlthoughTheClientVanished) {
    LongPoll poll;
    poll.wait = 1500ms;  // longer than the server needs to see that the client is gone
    Serving serving(poll.router("POST"));
    {
        Raw raw(serving.port());
        raw.send("POST /poll HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        ASSERT_TRUE(eventually([&] { return poll.entered == 1; }));
    }
    EXPECT_TRUE(eventually([&] { return poll.finished == 1; }));
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(ServerClients, LongPollOfAPatientClientIsNotCancelled) {
    LongPoll poll;
    poll.wait = 1500ms;
    Serving serving(poll.router("GET"));
    EXPECT_EQ(get(serving.url(), "/poll")->status, 200U);
    EXPECT_EQ(poll.finished, 1);
}

TEST(ServerClients, ClientThatVanishesInTheMiddleOfAResponseLeavesNothingBehind) {
    Router router;
    router.add("GET", "/large", [](Request) -> boost::asio::awaitable<Response> {
        Response response;
        response.body = std::string(32 << 20, 'x');
        co_return response;
    });
    Serving serving(std::move(router));
    for (int i = 0; i < 5; ++i) {
        Raw raw(serving.port());
        raw.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        raw.read_until("xxxx");
        raw.reset();
    }
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(ServerClients, ClientThatVanishesInTheMiddleOfARequestLeavesNothingBehind) {
    Serving serving(echo_router());
    {
        Raw header(serving.port());
        header.send("GET /ec");
        Raw body(serving.port());
        body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
        ASSERT_TRUE(eventually([&] { return serving.connection_count() == 2; }));
    }
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(ServerClients, ServerDestroyedUnderLongPollsUnwindsThem) {
    LongPoll poll;
    std::vector<Raw> clients;
    {
        Serving serving(poll.router("GET"));
        for (int i = 0; i < 5; ++i) {
            clients.emplace_back(serving.port());
            clients.back().send("GET /poll HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        ASSERT_TRUE(eventually([&] { return poll.entered == 5; }));
    }
    EXPECT_EQ(poll.inside, 0);
}

}  // namespace
}  // namespace memtide::http

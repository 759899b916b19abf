#include "common/http/client.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/common/http/serving.h"
#include "tests/support/loopback_server.h"

namespace memtide::http {
namespace {

namespace asio = boost::asio;

// A peer that sends `text` to whoever connects, whatever they ask, and closes unless told to hang on.
class Scripted {
  public:
    explicit Scripted(std::string text, bool hang = false)
        : server_([text = std::move(text), hang](int client) {
              char request[4096];
              if (::recv(client, request, sizeof request, 0) > 0)
                  ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
              while (hang && ::recv(client, request, sizeof request, 0) > 0) {
              }
          }) {}
    [[nodiscard]] std::string url() const { return "http://" + server_.address(); }
    [[nodiscard]] int connections() const { return server_.connections(); }

  private:
    test::LoopbackServer server_;
};

ErrorCode error_of(const std::string& url, std::chrono::milliseconds timeout = kPatience) {
    ClientRequest request;
    request.target = "/";
    request.timeout = timeout;
    const auto response = exchange(url, std::move(request));
    EXPECT_FALSE(response);
    return response ? ErrorCode::kInternal : response.error().code;
}

TEST(Client, SendsMethodHeadersAndBody) {
    Router router;
    router.add("PATCH", "/x", [](Request request) -> asio::awaitable<Response> {
        Response response;
        response.status = 201;
        response.headers["X-Back"] = std::string(request.header("x-there").value_or(""));
        response.body = request.body + "|" + std::string(request.header("Host").value_or(""));
        co_return response;
    });
    Serving serving(std::move(router));
    ClientRequest request;
    request.method = "PATCH";
    request.target = "/x";
    request.headers["X-There"] = "value";
    request.body = "body";
    const auto response = exchange(serving.url(), std::move(request));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 201U);
    EXPECT_EQ(response->headers.at("x-back"), "value");
    EXPECT_EQ("http://" + response->body.substr(5), serving.url());
}

TEST(Client, KeepsItsConnectionAndOpensItAgainWhenTheServerClosedIt) {
    ServerLimits limits;
    limits.idle_timeout = 100ms;
    Serving serving(echo_router(), limits);
    asio::io_context context;
    Client client(context.get_executor(), serving.url());
    const auto ask = [&] {
        ClientRequest request;
        request.target = "/echo";
        auto future = asio::co_spawn(context, client.send(std::move(request)), asio::use_future);
        context.restart();
        context.run();
        return future.get();
    };
    ASSERT_TRUE(ask());
    ASSERT_TRUE(ask());
    ASSERT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
    const auto response = ask();
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "GET /echo ");
}

TEST(Client, HeadHasNoBody) {
    Serving serving(echo_router());
    ClientRequest request;
    request.method = "HEAD";
    request.target = "/echo";
    const auto response = exchange(serving.url(), std::move(request));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "");
}

TEST(Client, HearsARefusalThatComesBeforeItHasSentEverything) {
    Serving serving(echo_router());
    ClientRequest request;
    request.method = "POST";
    request.target = "/echo";
    request.body = std::string(10 << 20, 'x');
    const auto response = exchange(serving.url(), std::move(request));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 413U);
}

TEST(Client, NobodyListeningIsUnavailable) {
    std::string url;
    {
        const Serving serving(echo_router());
        url = serving.url();
    }
    EXPECT_EQ(error_of(url), ErrorCode::kUnavailable);
    EXPECT_EQ(error_of("unix:/nowhere/socket"), ErrorCode::kUnavailable);
}

TEST(Client, SilentServerIsATimeout) {
    const Scripted server("", true);
    EXPECT_EQ(error_of(server.url(), 100ms), ErrorCode::kTimeout);
}

TEST(Client, AnswerThatStopsHalfwayIsATimeout) {
    const Scripted server("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true);
    EXPECT_EQ(error_of(server.url(), 200ms), ErrorCode::kTimeout);
}

TEST(Client, ConnectionClosedHalfwayIsUnavailable) {
    const Scripted server("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    EXPECT_EQ(error_of(server.url()), ErrorCode::kUnavailable);
}

TEST(Client, AnswerThatIsNotHttpIsAProtocolError) {
    const Scripted server("SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n");
    EXPECT_EQ(error_of(server.url()), ErrorCode::kProtocol);
}

TEST(Client, AnswerWithAnEndlessHeaderIsAProtocolError) {
    const Scripted server("HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x'), true);
    EXPECT_EQ(error_of(server.url()), ErrorCode::kProtocol);
}

TEST(Client, BodyWithoutLengthLastsUntilTheEnd) {
    const Scripted server("HTTP/1.1 200 OK\r\n\r\neverything");
    const auto response = get(server.url(), "/");
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "everything");
}

TEST(Client, SkipsInterimAnswers) {
    const Scripted server("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    EXPECT_EQ(get(server.url(), "/")->body, "ok");
}

TEST(Client, UrlsAndTargetsThatAreNoneAreRefused) {
    for (const char* url :
         {"", "127.0.0.1:80", "http://", "http://a:b", "http://a:70000", "http://a/b", "http://a b", "unix:"})
        EXPECT_EQ(error_of(url), ErrorCode::kInvalidArgument) << url;
    const auto response = get("http://127.0.0.1:1", "/a b");
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::kInvalidArgument);
}

// --- Streams ---

Result<ClientResponse> stream(const std::string& url, std::function<bool(std::string_view)> on_chunk,
                              std::chrono::milliseconds timeout = kPatience) {
    asio::io_context context;
    Client client(context.get_executor(), url);
    ClientRequest request;
    request.target = "/events";
    request.timeout = timeout;
    auto future =
        asio::co_spawn(context, client.stream(std::move(request), std::move(on_chunk)), asio::use_future);
    context.run();
    return future.get();
}

Router ticking() {
    Router router;
    router.add("GET", "/events", [](Request) -> asio::awaitable<Response> {
        Response response;
        response.stream = [](StreamWriter& writer) -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor);
            for (int i = 0; i < 20; ++i) {
                if (!co_await writer.write("tick\n")) co_return;
                timer.expires_after(20ms);
                co_await timer.async_wait(asio::use_awaitable);
            }
        };
        co_return response;
    });
    return router;
}

TEST(ClientStream, GetsEachPieceAndItsTimeoutIsThatOfTheBeginning) {
    Serving serving(ticking());
    std::string text;
    // 20 ticks take 400 ms; the header is there at once.
    const auto response = stream(
        serving.url(),
        [&text](std::string_view piece) {
            text += piece;
            return true;
        },
        10s);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(text.size(), 100U);
    EXPECT_EQ(response->body, "");
}

TEST(ClientStream, EndsWhenNoMoreIsWanted) {
    Serving serving(ticking());
    int pieces = 0;
    const auto response = stream(serving.url(), [&pieces](std::string_view) { return ++pieces < 3; });
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(pieces, 3);
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
}

TEST(ClientStream, KeepsTheBodyOfARefusal) {
    Serving serving(echo_router());
    const auto response = stream(serving.url(), [](std::string_view) { return true; });
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 404U);
    EXPECT_NE(response->body.find("not-found"), std::string::npos);
}

TEST(ClientStream, ConnectionLostInTheMiddleIsUnavailable) {
    const Scripted server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntick\r\n");
    std::string text;
    const auto response = stream(server.url(), [&text](std::string_view piece) {
        text += piece;
        return true;
    });
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(text, "tick");
}

}  // namespace
}  // namespace memtide::http

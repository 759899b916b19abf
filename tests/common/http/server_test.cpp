#include "common/http/server.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/common/http/serving.h"

namespace memtide::http {
namespace {

std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

TEST(Server, AnswersWithLengthDateAndKeepsTheConnection) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    const std::string text = raw.read_until("GET /echo ");
    EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
    EXPECT_NE(text.find("Content-Length: 10\r\n"), std::string::npos) << text;
    EXPECT_NE(text.find("Date: "), std::string::npos) << text;
    raw.send("DELETE /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(count_of(raw.read_to_end(), "HTTP/1.1 200 OK"), 2U);
}

TEST(Server, DecodesPathAndQuery) {
    Router router;
    router.add("GET", "/a b/{id}", [](Request request) -> boost::asio::awaitable<Response> {
        Response response;
        response.body = request.path_parameters["id"] + "|" + request.query["x y"] + "|" + request.query["z"];
        co_return response;
    });
    Serving serving(std::move(router));
    const auto response = get(serving.url(), "/a%20b/c%2Dd?x+y=1%262&z&q=");
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "c-d|1&2|");
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    std::string text;
    for (int i = 0; i < 50; ++i)
        text += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n" + std::to_string(100 + i);
    text += "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    raw.send(text);
    const std::string answers = raw.read_to_end();
    EXPECT_EQ(count_of(answers, "HTTP/1.1 200 OK"), 51U);
    std::size_t at = 0;
    for (int i = 0; i < 50; ++i) {
        const auto found = answers.find("POST /echo " + std::to_string(100 + i), at);
        ASSERT_NE(found, std::string::npos) << i;
        at = found;
    }
}

TEST(Server, TakesARequestByteByByte) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    for (const char c : std::string("PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
                                    "Connection: close\r\n\r\nbody"))
        ASSERT_TRUE(raw.send(std::string_view(&c, 1)));
    EXPECT_NE(raw.read_to_end().find("PUT /echo body"), std::string::npos);
}

TEST(Server, TakesChunkedBodies) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    raw.send("3\r\nabc\r\n");
    raw.send("A;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n");
    EXPECT_NE(raw.read_to_end().find("POST /echo abc0123456789"), std::string::npos);
}

TEST(Server, InvitesTheBodyOfAClientThatExpects100Continue) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
        "Connection: close\r\n\r\n");
    raw.read_until("HTTP/1.1 100 Continue\r\n\r\n");
    raw.send("hi");
    EXPECT_NE(raw.read_to_end().find("POST /echo hi"), std::string::npos);
}

TEST(Server, RefusesALargeBodyBeforeInvitingIt) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n");
    const std::string answer = raw.read_to_end();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
}

TEST(Server, RefusesOtherExpectations) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("GET /echo HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n");
    EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 417 "));
}

TEST(Server, HeadHasTheHeaderOfGetAndNoBody) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const std::string answer = raw.read_to_end();
    EXPECT_NE(answer.find("Content-Length: 11\r\n"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(Server, ClosesAfterAnHttp10Request) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("GET /echo HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(raw.read_to_end().ends_with("GET /echo "));
}

TEST(Server, AnswersMalformedRequestsWith400AndCloses) {
    Serving serving(echo_router());
    const std::string tls_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
    for (const std::string& text : {
             tls_hello,
             std::string("NONSENSE\r\n\r\n"),
             std::string("GET /echo HTTP/1.1\r\n\r\n"),                        // no Host
             std::string("GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),  // two
             std::string("GET echo HTTP/1.1\r\nHost: a\r\n\r\n"),              // not a path
             std::string("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"),              // bad escape
             std::string("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n"),              // NUL
             std::string("GET /echo HTTP/1.1\r\nHost a\r\n\r\n"),              // no colon
             std::string("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
             std::string("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
             std::string("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
             std::string("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                         "Content-Length: 3\r\n\r\nabc"),
         }) {
        Raw raw(serving.port());
        raw.send(text);
        const std::string answer = raw.read_to_end();
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << text << "\n->\n" << answer;
        EXPECT_NE(answer.find("\"code\":\"invalid-request\""), std::string::npos) << answer;
    }
    EXPECT_EQ(get(serving.url(), "/echo")->status, 200U);
}

TEST(Server, AnswersAnotherVersionWith505) {
    Serving serving(echo_router());
    Raw raw(serving.port());
    raw.send("GET /echo HTTP/3.7\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(raw.read_to_end().starts_with("HTTP/1.1 505 "));
}

TEST(Server, ExceptionOfAHandlerIsAnswered500WithoutItsText) {
    Router router;
    router.add("GET", "/", [](Request) -> boost::asio::awaitable<Response> {
        throw std::runtime_error("secret");
        co_return Response{};
    });
    Serving serving(std::move(router));
    const auto response = get(serving.url(), "/");
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 500U);
    EXPECT_NE(response->body.find("internal-error"), std::string::npos);
    EXPECT_EQ(response->body.find("secret"), std::string::npos);
    EXPECT_EQ(get(serving.url(), "/")->status, 500U);
}

TEST(Server, LineBreaksInAHeaderOfAHandlerCannotEndIt) {
    Router router;
    router.add("GET", "/", [](Request) -> boost::asio::awaitable<Response> {
        Response response;
        response.headers["Location"] = "/x\r\nSet-Cookie: a=b\r\n\r\nbody";
        co_return response;
    });
    Serving serving(std::move(router));
    const auto response = get(serving.url(), "/");
    ASSERT_TRUE(response);
    EXPECT_FALSE(response->headers.contains("Set-Cookie"));
}

TEST(Server, NoContentHasNeitherLengthNorBody) {
    Router router;
    router.add("GET", "/", [](Request) -> boost::asio::awaitable<Response> {
        Response response;
        response.status = 204;
        response.body = "must not show";
        co_return response;
    });
    Serving serving(std::move(router));
    Raw raw(serving.port());
    raw.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const std::string answer = raw.read_to_end();
    EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
    EXPECT_EQ(answer.find("Content-Length"), std::string::npos) << answer;
}

TEST(Server, ServesAUnixSocketAndRemovesItsFile) {
    std::string folder = "/tmp/memtide-http-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/s";
    {
        Serving serving(echo_router());
        const std::string address = "unix:" + path;
        ASSERT_TRUE(serving.on_server([&] { return serving.server().listen(address); }));
        const auto response = get(address, "/echo");
        ASSERT_TRUE(response) << response.error().message;
        EXPECT_EQ(response->body, "GET /echo ");
        EXPECT_TRUE(std::filesystem::exists(path));
        const auto again = serving.on_server([&] { return serving.server().listen(address); });
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().code, ErrorCode::kUnavailable);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    std::filesystem::remove_all(folder);
}

TEST(Server, APortInUseIsNamed) {
    Serving serving(echo_router());
    const std::string address = "127.0.0.1:" + std::to_string(serving.port());
    const auto second = serving.on_server([&] { return serving.server().listen(address); });
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(second.error().message.find(address), std::string::npos) << second.error().message;
}

TEST(Server, AddressesThatAreNoneAreRefused) {
    Serving serving(echo_router());
    for (const char* address : {"", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999",
                                "127.0.0.1:80x", "::1:80", "unix:"}) {
        const auto refused = serving.on_server([&] { return serving.server().listen(address); });
        ASSERT_FALSE(refused) << address;
        EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << address;
    }
}

TEST(Server, StopLetsARunningHandlerFinishAndRefusesNewConnections) {
    std::atomic<bool> entered = false;
    std::atomic<bool> go_on = false;
    Router router;
    router.add("POST", "/", [&](Request) -> boost::asio::awaitable<Response> {
        entered = true;
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
        while (!go_on) {
            timer.expires_after(2ms);
            co_await timer.async_wait(boost::asio::use_awaitable);
        }
        Response response;
        response.body = "finished";
        co_return response;
    });
    Serving serving(std::move(router));
    Raw idle(serving.port());
    Raw raw(serving.port());
    raw.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return entered.load(); }));
    auto stopped = serving.stop(60s);
    idle.read_to_end();
    EXPECT_FALSE(get(serving.url(), "/"));
    go_on = true;
    EXPECT_TRUE(raw.read_to_end().ends_with("finished"));
    ASSERT_EQ(stopped.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(serving.connection_count(), 0U);
}

TEST(Server, StopCancelsHandlersAfterTheGrace) {
    std::atomic<bool> entered = false;
    Router router;
    router.add("POST", "/", [&](Request) -> boost::asio::awaitable<Response> {
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, 10min);
        entered = true;
        co_await timer.async_wait(boost::asio::use_awaitable);
        co_return Response{};
    });
    Serving serving(std::move(router));
    Raw raw(serving.port());
    raw.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return entered.load(); }));
    ASSERT_EQ(serving.stop(10ms).wait_for(kPatience), std::future_status::ready);
    EXPECT_TRUE(eventually([&] { return serving.connection_count() == 0; }));
    raw.read_to_end();
}

}  // namespace
}  // namespace memtide::http

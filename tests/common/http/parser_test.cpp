// The parsers by themselves: what arrives in pieces reads as what arrives at once.
#include <gtest/gtest.h>

#include "common/http/request_parser.h"
#include "common/http/response_parser.h"

namespace memtide::http {
namespace {

// Feeds `text` in pieces of `step` bytes; the state after the last one.
RequestParser::State feed(RequestParser& parser, std::string_view text, std::size_t step) {
    std::string buffer;
    auto state = RequestParser::State::kNeedMore;
    for (std::size_t at = 0; at < text.size(); at += step) {
        buffer.append(text.substr(at, step));
        std::string_view bytes = buffer;
        state = parser.feed(bytes);
        buffer.erase(0, buffer.size() - bytes.size());
        if (state == RequestParser::State::kComplete || state == RequestParser::State::kFailed) break;
    }
    return state;
}

TEST(RequestParser, PiecesOfAnySizeReadTheSame) {
    for (const std::string_view body : {"0\r\n\r\n", "0\r\nT: x\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n",
                                        "1;a=b\r\nx\r\n2\r\nyz\r\n0;c\r\nT: x\r\nU: y\r\n\r\n"}) {
        const std::string text =
            "\r\nPOST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(body);
        RequestParser whole(1000, 1000);
        ASSERT_EQ(feed(whole, text, text.size()), RequestParser::State::kComplete) << body;
        const std::string expected = whole.take().body;
        for (std::size_t step = 1; step < text.size(); ++step) {
            RequestParser parser(1000, 1000);
            ASSERT_EQ(feed(parser, text, step), RequestParser::State::kComplete) << step << " " << body;
            EXPECT_EQ(parser.take().body, expected) << step;
        }
    }
}

TEST(RequestParser, ABareLineFeedIsNoEndOfALine) {
    for (const std::string_view text :
         {"GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\n\n", "GET / HTTP/1.1\nHost: a\n\n",
          "GET / HTTP/1.1\r\nHost: a\r\nX: b\nY: c\r\n\r\n", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\n0\r\n\r\n"})
        for (std::size_t step : {std::size_t{1}, std::size_t{7}, text.size()}) {
            RequestParser parser(1000, 1000);
            ASSERT_EQ(feed(parser, text, step), RequestParser::State::kFailed) << step << " " << text;
            EXPECT_EQ(parser.refusal().status, 400U) << text;
        }
}

TEST(RequestParser, NamesAParameterThatIsGivenTwice) {
    RequestParser parser(1000, 1000);
    ASSERT_EQ(feed(parser, "GET /?a=1&b=2&%61=3 HTTP/1.1\r\nHost: a\r\n\r\n", 100),
              RequestParser::State::kComplete);
    EXPECT_EQ(parser.take().repeated_parameter, "a");
}

TEST(RequestParser, LeavesThePipelinedRequest) {
    RequestParser parser(1000, 1000);
    std::string_view bytes = "GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\nGET /next";
    ASSERT_EQ(parser.feed(bytes), RequestParser::State::kComplete);
    EXPECT_EQ(bytes, "GET /next");
    const Request request = parser.take();
    EXPECT_EQ(request.path, "/a");
    EXPECT_EQ(request.query_value("b"), "c");
    EXPECT_EQ(request.header("HOST"), "a");
}

TEST(RequestParser, FieldsGivenTwiceBecomeAList) {
    RequestParser parser(1000, 1000);
    std::string_view bytes = "GET / HTTP/1.1\r\nHost: a\r\nAccept: x\r\naccept: y\r\n\r\n";
    ASSERT_EQ(parser.feed(bytes), RequestParser::State::kComplete);
    EXPECT_EQ(parser.take().headers.at("Accept"), "x, y");
}

TEST(RequestParser, TakesAnAbsoluteTarget) {
    RequestParser parser(1000, 1000);
    std::string_view bytes = "GET http://a:80/b?c HTTP/1.1\r\nHost: a\r\n\r\n";
    ASSERT_EQ(parser.feed(bytes), RequestParser::State::kComplete);
    EXPECT_EQ(parser.take().path, "/b");
}

TEST(ResponseParser, PiecesOfAnySizeReadTheSame) {
    const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const std::string_view body :
         {"0\r\n\r\n", "0\r\nT: x\r\n\r\n", "4\r\ntick\r\n4\r\ntock\r\n0\r\n\r\n"}) {
        const std::string text = head + std::string(body);
        for (std::size_t step = 1; step <= text.size(); ++step) {
            ResponseParser parser(false);
            std::string buffer;
            Result<ResponseParser::State> state = ResponseParser::State::kNeedMore;
            for (std::size_t at = 0; at < text.size(); at += step) {
                buffer.append(std::string_view(text).substr(at, step));
                std::string_view bytes = buffer;
                state = parser.feed(bytes);
                buffer.erase(0, buffer.size() - bytes.size());
                ASSERT_TRUE(state) << state.error().message;
            }
            ASSERT_EQ(*state, ResponseParser::State::kComplete) << step << " " << body;
            EXPECT_EQ(parser.take().body, body.size() > 20 ? "ticktock" : "");
        }
    }
}

TEST(ResponseParser, StreamsAChunkAsSoonAsItIsThere) {
    ResponseParser parser(false);
    std::string heard;
    parser.stream_to([&heard](std::string_view piece) {
        heard += piece;
        return true;
    });
    std::string buffer;
    for (const std::string_view piece :
         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nti", "ck", "\r\n3\r\nto", "c"}) {
        buffer += piece;
        std::string_view bytes = buffer;
        ASSERT_TRUE(parser.feed(bytes));
        buffer.erase(0, buffer.size() - bytes.size());
    }
    EXPECT_EQ(heard, "ticktoc");
}

}  // namespace
}  // namespace memtide::http

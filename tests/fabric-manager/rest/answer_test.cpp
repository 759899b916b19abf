#include "fabric-manager/rest/answer.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

http::Request with_query(std::string name, std::string value) {
    http::Request request;
    request.query[std::move(name)] = std::move(value);
    return request;
}

http::Request with_type(std::string type) {
    http::Request request;
    request.headers["content-type"] = std::move(type);
    return request;
}

TEST(RestAnswer, JsonBodiesMustSayThatTheyAre) {
    EXPECT_FALSE(check_media_type(with_type("application/json")));
    EXPECT_FALSE(check_media_type(with_type("Application/JSON ; charset=utf-8")));
    EXPECT_TRUE(check_media_type(with_type("text/plain")));
    EXPECT_TRUE(check_media_type(with_type("application/jsonx")));
    EXPECT_TRUE(check_media_type(http::Request{}));
    EXPECT_EQ(answer(*check_media_type(http::Request{})).status, 415U);
}

TEST(RestAnswer, JsonIsInUtf8AndNotEncoded) {
    for (const char* type : {"application/json; charset=\"UTF-8\"", "application/json;a=b;charset=utf-8",
                             "application/json;", "application/json; profile=x"})
        EXPECT_FALSE(check_media_type(with_type(type))) << type;
    for (const char* type : {"application/json; charset=latin1", "application/json;Charset=\"utf-16\"",
                             "application/json; a=b; charset=utf8"})
        EXPECT_TRUE(check_media_type(with_type(type))) << type;
    http::Request request = with_type("application/json");
    request.headers["Content-Encoding"] = "identity";
    EXPECT_FALSE(check_media_type(request));
    request.headers["Content-Encoding"] = "gzip";
    const auto refused = check_media_type(request);
    ASSERT_TRUE(refused);
    EXPECT_NE(refused->detail.find("Content-Encoding is gzip"), std::string::npos);
    EXPECT_EQ(answer(*refused).status, 415U);
}

TEST(RestAnswer, PagingHasBounds) {
    EXPECT_EQ(paging(http::Request{})->limit, 100U);
    EXPECT_EQ(paging(with_query("limit", "1000"))->limit, 1000U);
    for (const auto* wrong : {"0", "1001", "-1", "x", "", "10x"})
        EXPECT_EQ(paging(with_query("limit", wrong)).error().code, problem::kInvalidRequest) << wrong;
}

TEST(RestAnswer, LongTimeoutsAreShortenedAndWrongOnesRefused) {
    EXPECT_EQ(*timeout(http::Request{}, Milliseconds(7), Milliseconds(10)), Milliseconds(7));
    EXPECT_EQ(*timeout(with_query("timeout", "5ms"), Milliseconds(7), Milliseconds(10)), Milliseconds(5));
    EXPECT_EQ(*timeout(with_query("timeout", "1h"), Milliseconds(7), Milliseconds(10)), Milliseconds(10));
    EXPECT_FALSE(timeout(with_query("timeout", "soon"), Milliseconds(7), Milliseconds(10)));
}

TEST(RestAnswer, FlagsAndNumbersAreReadStrictly) {
    EXPECT_FALSE(*flag(http::Request{}, "force"));
    EXPECT_TRUE(*flag(with_query("force", ""), "force"));
    EXPECT_TRUE(*flag(with_query("force", "true"), "force"));
    EXPECT_FALSE(*flag(with_query("force", "false"), "force"));
    EXPECT_FALSE(flag(with_query("force", "yes"), "force"));
    EXPECT_EQ(**number(with_query("after", "18446744073709551615"), "after"), ~0ULL);
    EXPECT_FALSE(number(with_query("after", "18446744073709551616"), "after"));
}

TEST(RestAnswer, ProblemsHaveTheStatusOfTheirCode) {
    EXPECT_EQ(answer(Problem{"unknown-composition", "x"}).status, 404U);
    EXPECT_EQ(answer(Problem{"size-zero", "x"}).status, 422U);
    EXPECT_EQ(answer(Problem{"idempotency-conflict", "x"}).status, 409U);
    for (const char* code : {"storage-full", "storage-read-only", "storage-failed"}) {
        const http::Response refused = answer(Problem{code, "x", ErrorCode::kExhausted});
        EXPECT_EQ(refused.status, 503U);
        EXPECT_EQ(refused.headers.at("Retry-After"), "5");
    }
    EXPECT_EQ(answer(Problem{"internal-error", "x", ErrorCode::kInternal}).status, 500U);
    EXPECT_EQ(answer(Problem{"internal-error", "x", ErrorCode::kCancelled}).status, 503U);
    EXPECT_EQ(answer(Problem{"never-heard-of", "x"}).status, 500U);
}

}  // namespace
}  // namespace memtide::fm

#include "common/http/router.h"

#include <gtest/gtest.h>

#include "common/http/client.h"
#include "tests/common/http/serving.h"

namespace memtide::http {
namespace {

Response dispatch(const Router& router, std::string method, std::string path) {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    boost::asio::io_context context;
    auto future =
        boost::asio::co_spawn(context, router.dispatch(std::move(request)), boost::asio::use_future);
    context.run();
    return future.get();
}

boost::asio::awaitable<Response> host_name(Request request) {
    Response response;
    response.body = request.path_parameters["host"];
    co_return response;
}

Router hosts_router() {
    Router router;
    router.add("GET", "/v1/hosts", echo);
    router.add("GET", "/v1/hosts/{host}/desired", host_name);
    router.add("PUT", "/v1/hosts/{host}/observed", host_name);
    return router;
}

TEST(Router, FillsPathParameters) {
    EXPECT_EQ(dispatch(hosts_router(), "GET", "/v1/hosts/host0/desired").body, "host0");
}

TEST(Router, ParameterMatchesOneSegmentThatIsNotEmpty) {
    const Router router = hosts_router();
    EXPECT_EQ(dispatch(router, "GET", "/v1/hosts//desired").status, 404U);
    EXPECT_EQ(dispatch(router, "GET", "/v1/hosts/a/b/desired").status, 404U);
}

TEST(Router, UnknownPathAnswersNotFoundProblem) {
    const Response response = dispatch(hosts_router(), "GET", "/v2/hosts");
    EXPECT_EQ(response.status, 404U);
    EXPECT_EQ(response.headers.at("content-type"), "application/problem+json");
    EXPECT_NE(response.body.find("\"code\":\"not-found\""), std::string::npos);
}

TEST(Router, OtherMethodAnswersMethodNotAllowedWithAllow) {
    const Response response = dispatch(hosts_router(), "DELETE", "/v1/hosts");
    EXPECT_EQ(response.status, 405U);
    EXPECT_EQ(response.headers.at("Allow"), "GET, HEAD, OPTIONS");
    EXPECT_NE(response.body.find("method-not-allowed"), std::string::npos);
}

TEST(Router, HeadIsServedByGet) { EXPECT_EQ(dispatch(hosts_router(), "HEAD", "/v1/hosts").status, 200U); }

TEST(Router, OptionsListsMethods) {
    const Response response = dispatch(hosts_router(), "OPTIONS", "/v1/hosts/host0/observed");
    EXPECT_EQ(response.status, 204U);
    EXPECT_EQ(response.headers.at("Allow"), "PUT, OPTIONS");
}

TEST(Router, ProblemOfAPathThatIsNoTextIsStillJson) {
    const Response response =
        dispatch(hosts_router(), "GET", std::string("/\xff\xfe") + std::string(5000, 'x'));
    EXPECT_EQ(response.status, 404U);
    EXPECT_EQ(response.body.find('\xff'), std::string::npos);
    EXPECT_LT(response.body.size(), 1000U);
}

TEST(Router, ListsItsRoutes) {
    const auto routes = hosts_router().routes();
    ASSERT_EQ(routes.size(), 3U);
    EXPECT_EQ(routes[1], (std::pair<std::string, std::string>{"GET", "/v1/hosts/{host}/desired"}));
}

TEST(PercentEncode, KeepsUnreservedAndEncodesTheRest) {
    EXPECT_EQ(percent_encode("a-Z_0.~ /?\xc3\xa9"), "a-Z_0.~%20%2F%3F%C3%A9");
}

}  // namespace
}  // namespace memtide::http

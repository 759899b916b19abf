// Handlers over the real manager, a fake switch and fake agents: answers are as openapi.json describes them.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/rest/api.h"
#include "fabric-manager/rest/openapi.h"
#include "fabric-manager/rest/routes.h"
#include "tests/fabric-manager/engine/rig.h"
#include "tests/fabric-manager/rest/schema.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::IsEmpty;

class Handlers : public testing::Test {
  protected:
    void SetUp() override {
        rig_.fabric->add_mld(2, {1, 1}, 2);
        rig_.config.tenants["blue"] = {};
        rig_.start_ready();
        api_ = std::make_unique<RestApi>(*rig_.manager, metrics_,
                                         RestOptions{.heartbeat = std::chrono::milliseconds(20)});
    }

    http::Response call(const std::string& method, const std::string& path, std::string body = {},
                        std::map<std::string, std::string> query = {}, http::Headers headers = {}) {
        http::Request request;
        request.method = method;
        request.headers = std::move(headers);
        request.path = path;
        request.query = std::move(query);
        if (!body.empty()) request.headers["Content-Type"] = "application/json";
        request.body = std::move(body);
        return rig_.run(api_->router().dispatch(std::move(request)));
    }
    std::string compose() {
        const http::Response response =
            call("POST", "/v1/compositions", R"({"host":"host0","size":"256MiB"})");
        EXPECT_EQ(response.status, 202U) << response.body;
        return std::string(json::parse(response.body).at("id").as_string());
    }
    // What openapi.json says of the answer, and where the answer differs from it.
    std::vector<std::string> mistakes(const std::string& method, const std::string& pattern,
                                      const http::Response& response) {
        const json::value document = json::parse(openapi_document());
        const json::value& operation = document.at("paths").at(pattern).at(method);
        const json::value* described =
            operation.at("responses").as_object().if_contains(std::to_string(response.status));
        if (described == nullptr) return {"status " + std::to_string(response.status) + " is not described"};
        if (const json::value* reference = described->as_object().if_contains("$ref"))
            described = &document.at_pointer(std::string(reference->as_string()).substr(1));
        const json::value* content = described->as_object().if_contains("content");
        if (content == nullptr)
            return response.body.empty() ? std::vector<std::string>{}
                                         : std::vector<std::string>{"it has a body, and none is described"};
        const std::string type = response.headers.at("Content-Type");
        const json::value* body = content->as_object().if_contains(type.substr(0, type.find(';')));
        if (body == nullptr) return {type + " is not described"};
        const json::value* reference = body->at("schema").as_object().if_contains("$ref");
        if (reference == nullptr) return {};
        const std::string name(reference->as_string());
        return Schema(document, name.substr(name.rfind('/') + 1)).mistakes(json::parse(response.body));
    }

    Rig rig_;
    metrics::Registry metrics_;
    std::unique_ptr<RestApi> api_;
};

TEST_F(Handlers, EveryGetIsAnsweredAsDescribed) {
    const std::string id = compose();
    ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kOnline));
    const std::string device(
        json::parse(call("GET", "/v1/devices").body).at("items").at(0).at("name").as_string());
    const std::map<std::string, std::string> values{{"{host}", "host0"},
                                                    {"{switch}", "switch0"},
                                                    {"{tenant}", "blue"},
                                                    {"{device}", device},
                                                    {"{id}", id}};
    int called = 0;
    for (const Route& route : routes()) {
        if (route.method != "GET" || route.operation == "streamEvents") continue;
        std::string path(route.path);
        for (const auto& [name, value] : values)
            if (const auto at = path.find(name); at != std::string::npos)
                path.replace(at, name.size(), value);
        const http::Response response = call("GET", path);
        EXPECT_EQ(response.status, 200U) << path << response.body;
        EXPECT_THAT(mistakes("get", std::string(route.path), response), IsEmpty()) << path;
        ++called;
    }
    EXPECT_GE(called, 14);
}

TEST_F(Handlers, EveryChangeIsAnsweredAsDescribed) {
    const http::Response created =
        call("POST", "/v1/compositions", R"({"host":"host0","size":"256MiB","ttl":"1h"})");
    EXPECT_THAT(mistakes("post", "/v1/compositions", created), IsEmpty());
    const std::string id(json::parse(created.body).at("id").as_string());
    ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kOnline));
    EXPECT_THAT(mistakes("delete", "/v1/compositions/{id}", call("DELETE", "/v1/compositions/" + id)),
                IsEmpty());
    EXPECT_THAT(mistakes("put", "/v1/hosts/{host}/observed",
                         call("PUT", "/v1/hosts/host1/observed", R"({"boot_id":"b"})")),
                IsEmpty());
}

TEST_F(Handlers, RefusalsAreAnsweredAsDescribed) {
    for (const auto* body : {"{", "{}", R"({"host":"nobody","size":1})", R"({"host":"host0","size":0})",
                             R"({"host":"host0","size":-1})", R"({"host":"host0","size":7})",
                             R"({"host":"host0","size":"1TiB"})", R"({"host":"host0","size":"1GiB"})"}) {
        compose();
        const http::Response response = call("POST", "/v1/compositions", body);
        EXPECT_GE(response.status, 400U) << body;
        EXPECT_THAT(mistakes("post", "/v1/compositions", response), IsEmpty()) << body << response.body;
        const json::value listed = json::parse(call("GET", "/v1/compositions").body);
        for (const auto& item : listed.at("items").as_array()) {
            const std::string id(item.at("id").as_string());
            call("DELETE", "/v1/compositions/" + id, "", {{"force", "true"}});
            ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kReleased));
        }
    }
    EXPECT_THAT(mistakes("get", "/v1/compositions/{id}", call("GET", "/v1/compositions/c-1")), IsEmpty());
    EXPECT_THAT(mistakes("delete", "/v1/compositions/{id}", call("DELETE", "/v1/compositions/c-1")),
                IsEmpty());
    EXPECT_THAT(mistakes("get", "/v1/hosts/{host}/desired", call("GET", "/v1/hosts/x/desired")), IsEmpty());
    EXPECT_THAT(mistakes("put", "/v1/hosts/{host}/observed", call("PUT", "/v1/hosts/x/observed", "{}")),
                IsEmpty());
}

TEST_F(Handlers, ADryRunLooksAtItsIdempotencyKeyAndDoesNotUseItUp) {
    const std::string body = R"({"host":"host0","size":"256MiB"})";
    const std::string other = R"({"host":"host0","size":"512MiB"})";
    const http::Headers key{{"Idempotency-Key", "backup-17"}};
    const auto dry_run = [&](const std::string& wanted) {
        const http::Response response = call("POST", "/v1/compositions", wanted, {{"dryRun", "true"}}, key);
        EXPECT_THAT(mistakes("post", "/v1/compositions", response), IsEmpty()) << response.body;
        return response;
    };
    for (const std::string& wanted : {other, body}) {
        const http::Response fresh = dry_run(wanted);
        EXPECT_EQ(fresh.status, 200U);
        EXPECT_TRUE(json::parse(fresh.body).at("id").is_null());
        EXPECT_FALSE(fresh.headers.contains("Idempotent-Replayed"));
    }
    const http::Response created = call("POST", "/v1/compositions", body, {}, key);
    ASSERT_EQ(created.status, 202U) << created.body;
    EXPECT_FALSE(created.headers.contains("Idempotent-Replayed"));

    const http::Response replayed = dry_run(body);
    EXPECT_EQ(replayed.status, 200U);
    EXPECT_EQ(json::parse(replayed.body).at("id"), json::parse(created.body).at("id"));
    EXPECT_EQ(replayed.headers.at("Idempotent-Replayed"), "true");
    EXPECT_EQ(replayed.headers.at("Location"), created.headers.at("Location"));
    const http::Response refused = dry_run(other);
    const http::Response real = call("POST", "/v1/compositions", other, {}, key);
    EXPECT_EQ(refused.status, 409U);
    EXPECT_THAT(refused.body, HasSubstr("idempotency-conflict"));
    EXPECT_EQ(json::parse(refused.body).at("detail"), json::parse(real.body).at("detail"));
}

TEST_F(Handlers, ALongPollEndsWhenTheCompositionHasEndedElsewhere) {
    const std::string id = compose();
    ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kOnline));
    call("DELETE", "/v1/compositions/" + id);
    // It will never be Pending again; an hour would not do.
    const http::Response response =
        call("GET", "/v1/compositions/" + id, "", {{"wait", "Pending"}, {"timeout", "1h"}});
    EXPECT_THAT(response.body, HasSubstr("\"state\":\"Released\""));
}

TEST_F(Handlers, ALongPollEndsAtItsTimeoutWithTheCompositionAsItIs) {
    rig_.agents[0]->enabled = false;
    const std::string id = compose();
    ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kOnlining));
    const http::Response response =
        call("GET", "/v1/compositions/" + id, "", {{"wait", "Online"}, {"timeout", "20ms"}});
    EXPECT_EQ(response.status, 200U);
    EXPECT_THAT(response.body, HasSubstr("\"state\":\"Onlining\""));
    // It waits for its agent: that is noted, and not part of the revision.
    EXPECT_THAT(response.headers.at("ETag"),
                testing::StartsWith("\"" + json::serialize(json::parse(response.body).at("revision")) + "-"));
}

// Takes an event stream in until it has seen what it is for.
class Taker : public http::StreamWriter {
  public:
    explicit Taker(std::string until) : until_(std::move(until)) {}
    boost::asio::awaitable<Result<>> write(std::string chunk) override {
        taken += chunk;
        if (taken.find(until_) != std::string::npos) co_return fail(ErrorCode::kUnavailable, "seen enough");
        co_return Result<>{};
    }
    std::string taken;

  private:
    std::string until_;
};

TEST_F(Handlers, AQuietEventStreamSendsHeartbeats) {
    const http::Response response = call("GET", "/v1/events");
    EXPECT_EQ(response.headers.at("Content-Type"), "text/event-stream");
    Taker taker(": heartbeat\n\n: heartbeat\n\n");
    rig_.run([](const http::Response& r, Taker& t) -> boost::asio::awaitable<int> {
        co_await r.stream(t);
        co_return 0;
    }(response, taker));
    EXPECT_TRUE(taker.taken.starts_with("retry: ")) << taker.taken;
}

TEST_F(Handlers, EventsAreStreamedAsDescribed) {
    const std::string id = compose();
    ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kOnline));
    const http::Response response = call("GET", "/v1/events", "", {{"after", "0"}});
    Taker taker("\"state\":\"Online\"");
    rig_.run([](const http::Response& r, Taker& t) -> boost::asio::awaitable<int> {
        co_await r.stream(t);
        co_return 0;
    }(response, taker));
    const json::value document = json::parse(openapi_document());
    int events = 0;
    for (std::size_t at = 0; (at = taker.taken.find("data: ", at)) != std::string::npos; ++at) {
        const std::string data = taker.taken.substr(at + 6, taker.taken.find('\n', at) - at - 6);
        EXPECT_THAT(Schema(document, "Event").mistakes(json::parse(data)), IsEmpty()) << data;
        ++events;
    }
    EXPECT_GE(events, 4);
}

TEST_F(Handlers, AnswersAreCountedByRouteAndClassOfStatus) {
    call("GET", "/v1/pool");
    call("GET", "/v1/compositions/c-1");
    const std::string metrics = call("GET", "/metrics").body;
    EXPECT_THAT(metrics,
                HasSubstr(R"(memtide_http_requests_total{code="2xx",method="GET",route="/v1/pool"} 1)"));
    EXPECT_THAT(
        metrics,
        HasSubstr(R"(memtide_http_requests_total{code="4xx",method="GET",route="/v1/compositions/{id}"} 1)"));
}

}  // namespace
}  // namespace memtide::fm

// What clients get wrong, told by a stable code; the manager is none the worse for it.
#include <fmt/format.h>

#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class BadInput : public Fabric {
  protected:
    void SetUp() override { run_all(); }

    void expect_problem(const RestAnswer& answer, unsigned status, const std::string& code) {
        EXPECT_EQ(answer.status, status) << answer.body;
        EXPECT_EQ(answer.code(), code) << answer.body;
        EXPECT_EQ(answer.headers.contains("Content-Type") ? answer.headers.at("Content-Type") : "",
                  "application/problem+json");
        EXPECT_FALSE(text(answer.json, "detail").empty());
    }
    RestAnswer post(const std::string& body) { return rest_.send_json("POST", "/v1/compositions", body); }
    RestAnswer post_size(const std::string& size) { return post(R"({"host":"host0","size":)" + size + "}"); }
};

TEST_F(BadInput, BadJson) {
    for (const auto* body : {"", "{", "not json", "{\"host\":\"host0\",}", "[[[[", "\xff"})
        expect_problem(post(body), 400, "invalid-json");
    expect_problem(post("[]"), 400, "invalid-request");
    expect_problem(post(R"({"host":"host0"})"), 400, "invalid-request");
    expect_problem(post(R"({"host":"host0","size":1,"siez":2})"), 400, "invalid-request");
    expect_all_free();
}

TEST_F(BadInput, UnknownHost) {
    expect_problem(rest_.compose("nobody", "256MiB"), 422, "unknown-host");
    expect_problem(rest_.get("/v1/hosts/nobody"), 404, "not-found");
    expect_problem(rest_.get("/v1/hosts/nobody/desired"), 404, "unknown-host");
    expect_problem(rest_.send_json("PUT", "/v1/hosts/nobody/observed", R"({"boot_id":"b"})"), 404,
                   "unknown-host");
}

TEST_F(BadInput, SizesThatCannotBe) {
    expect_problem(post_size("0"), 422, "size-zero");
    expect_problem(post_size("-1"), 422, "size-negative");
    expect_problem(post_size("\"-256MiB\""), 422, "size-negative");
    expect_problem(post_size("1"), 422, "size-not-multiple");
    expect_problem(post_size("\"100MiB\""), 422, "size-not-multiple");
    expect_problem(post_size("\"256MB\""), 400, "invalid-request");
    expect_problem(post_size("268435456.5"), 400, "invalid-request");
    expect_problem(post_size("1e400"), 400, "invalid-json");
    expect_all_free();
}

TEST_F(BadInput, LargerThanFree) {
    expect_state(compose("host0"), "Online");
    expect_problem(rest_.compose("host1", "1GiB"), 409, "exceeds-free");
}

TEST_F(BadInput, LargerThanAnyDevice) {
    expect_problem(rest_.compose("host0", "2GiB"), 422, "exceeds-capacity");
    expect_problem(rest_.compose("host0", "1048576TiB"), 422, "exceeds-capacity");
}

TEST_F(BadInput, UnknownId) {
    for (const auto* id : {"c-nothere", "%00", "..%2f..%2fetc", "%ff"}) {
        const std::string target = std::string("/v1/compositions/") + id;
        const RestAnswer answer = rest_.get(target);
        EXPECT_TRUE(answer.status == 404 || answer.status == 400) << id << answer.body;
        EXPECT_EQ(rest_.call("DELETE", target).status, answer.status);
    }
    expect_problem(rest_.get("/v1/compositions/c-nothere"), 404, "unknown-composition");
    expect_problem(rest_.get("/v1/compositions/c-nothere?wait=Online"), 404, "unknown-composition");
    expect_problem(rest_.get("/v1/nothing"), 404, "not-found");
    expect_problem(rest_.get("/v1/devices/nothing"), 404, "not-found");
}

TEST_F(BadInput, WrongMethod) {
    const RestAnswer answer = rest_.send_json("PUT", "/v1/compositions", "{}");
    expect_problem(answer, 405, "method-not-allowed");
    EXPECT_NE(answer.headers.at("Allow").find("POST"), std::string::npos);
    expect_problem(rest_.call("DELETE", "/v1/pool"), 405, "method-not-allowed");
}

TEST_F(BadInput, WrongContentType) {
    const std::string body = R"({"host":"host0","size":"256MiB"})";
    expect_problem(rest_.call("POST", "/v1/compositions", body), 415, "unsupported-media-type");
    expect_problem(rest_.call("POST", "/v1/compositions", body, {{"Content-Type", "text/plain"}}), 415,
                   "unsupported-media-type");
    expect_problem(rest_.call("PUT", "/v1/hosts/host0/observed", R"({"boot_id":"b"})"), 415,
                   "unsupported-media-type");
    expect_all_free();
}

TEST_F(BadInput, TenMegabytesOfBody) {
    const RestAnswer answer = post(R"({"host":"host0","size":"256MiB","tenant":")" +
                                   std::string(std::size_t{10} << 20, 'x') + "\"}");
    // A server may close while the rest is still being sent; it must not take it in.
    if (answer.status != 0) expect_problem(answer, 413, "body-too-large");
    EXPECT_EQ(rest_.get("/healthz").status, 200U);
    expect_all_free();
}

TEST_F(BadInput, QueriesThatMakeNoSense) {
    const std::string id = compose("host0");
    for (const auto* query :
         {"?wait=online", "?wait=", "?wait=Online&timeout=soon", "?wait=Online&timeout=-1s"})
        expect_problem(rest_.get("/v1/compositions/" + id + query), 400, "invalid-request");
    for (const auto* query : {"?limit=0", "?limit=1001", "?limit=x", "?page=x", "?state=x"})
        expect_problem(rest_.get("/v1/compositions" + std::string(query)), 400, "invalid-request");
    expect_problem(rest_.call("DELETE", "/v1/compositions/" + id + "?force=perhaps"), 400, "invalid-request");
    expect_problem(rest_.get("/v1/hosts/host0/desired?after=x"), 400, "invalid-request");
    expect_problem(rest_.call("GET", "/v1/events", "", {{"Last-Event-ID", "x"}}), 400, "invalid-request");
    expect_state(id, "Online");
}

TEST_F(BadInput, ADryRunRefusesWhatTheRealOneWould) {
    const std::string body = R"({"host":"host0","size":"256MiB"})";
    for (const std::string more : {"", "&dryRun=true"}) {
        for (const std::string query : {"?wait=online", "?wait=Online&timeout=soon", "?timeout=-1s"})
            expect_problem(rest_.send_json("POST", "/v1/compositions" + query + more, body), 400,
                           "invalid-request");
        for (const std::string& key : {std::string("with space"), std::string(256, 'k')})
            expect_problem(rest_.call("POST", "/v1/compositions?" + more.substr(more.empty() ? 0 : 1), body,
                                      {{"Content-Type", "application/json"}, {"Idempotency-Key", key}}),
                           400, "invalid-request");
    }
    const RestAnswer planned = rest_.send_json("POST", "/v1/compositions?dryRun=true&wait=Online", body);
    EXPECT_EQ(planned.status, 200U) << planned.body;
    expect_all_free();
}

TEST_F(BadInput, WhatIsNoSerialNumberIsToldItsForm) {
    for (const auto* serial : {"4d54000100000001", "0x", "nonsense"}) {
        const RestAnswer answer = rest_.call("DELETE", std::string("/v1/quarantine/") + serial);
        expect_problem(answer, 404, "not-quarantined");
        EXPECT_NE(text(answer.json, "detail").find("0x and hexadecimal digits"), std::string::npos);
    }
    EXPECT_NE(text(rest_.call("DELETE", "/v1/quarantine/1234").json, "detail").find("decimal"),
              std::string::npos);
}

TEST_F(BadInput, TheSameIdempotencyKeyTwiceIsAnsweredTheSame) {
    const http::Headers key{{"Idempotency-Key", "key-1"}};
    const RestAnswer first = rest_.compose("host0", "256MiB", key);
    const RestAnswer second = rest_.compose("host0", "256MiB", key);
    EXPECT_EQ(first.status, 202U);
    EXPECT_EQ(second.status, 202U);
    EXPECT_EQ(first.body, second.body);
    EXPECT_EQ(second.headers.at("Idempotent-Replayed"), "true");
    EXPECT_EQ(rest_.get("/v1/compositions").json.at("items").as_array().size(), 1U);
    // Also after the manager was gone.
    manager_->kill();
    run_manager();
    EXPECT_EQ(rest_.compose("host0", "256MiB", key).body, first.body);
}

TEST_F(BadInput, TheSameIdempotencyKeyWithAnotherBodyIsRefused) {
    const http::Headers key{{"Idempotency-Key", "key-1"}};
    EXPECT_EQ(rest_.compose("host0", "256MiB", key).status, 202U);
    expect_problem(rest_.compose("host1", "256MiB", key), 409, "idempotency-conflict");
    expect_problem(rest_.compose("host0", "512MiB", key), 409, "idempotency-conflict");
    expect_problem(rest_.compose("host0", "256MiB", {{"Idempotency-Key", std::string(300, 'k')}}), 400,
                   "invalid-request");
}

TEST_F(BadInput, AReleaseOfWhatHasEndedOrChangedIsRefused) {
    const std::string id = compose("host0");
    const std::string target = "/v1/compositions/" + id;
    const std::string etag = rest_.get(target + "?wait=Online").headers.at("ETag");
    expect_problem(rest_.call("DELETE", target, "", {{"If-Match", "\"0\""}}), 412, "precondition-failed");
    EXPECT_EQ(rest_.call("DELETE", target, "", {{"If-Match", "\"0\", " + etag}}).status, 202U);
    expect_state(id, "Released");
    expect_problem(rest_.call("DELETE", target), 409, "composition-ended");
}

}  // namespace
}  // namespace memtide::test

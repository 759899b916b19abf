// What holds for every resource, whatever it is: entity tags, preconditions, filters and pages.
#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/rest/api.h"
#include "fabric-manager/rest/preconditions.h"
#include "fabric-manager/rest/routes.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Resources : public testing::Test {
  protected:
    void SetUp() override {
        rig_.fabric->add_mld(2, {1, 1, 1}, 3);
        for (const char* tenant : {"blue", "t1", "t11"}) rig_.config.tenants[tenant] = {};
        rig_.start_ready();
        api_ = std::make_unique<RestApi>(*rig_.manager, metrics_);
    }
    http::Response call(const std::string& method, const std::string& path,
                        std::map<std::string, std::string> query = {}, http::Headers headers = {},
                        std::string body = {}) {
        http::Request request;
        request.method = method;
        request.path = path;
        request.query = std::move(query);
        request.headers = std::move(headers);
        if (!body.empty()) request.headers["Content-Type"] = "application/json";
        request.body = std::move(body);
        return rig_.run(api_->router().dispatch(std::move(request)));
    }
    std::string compose(std::string body = R"({"host":"host0","size":"256MiB"})") {
        const http::Response response = call("POST", "/v1/compositions", {}, {}, std::move(body));
        EXPECT_EQ(response.status, 202U) << response.body;
        std::string id(json::parse(response.body).at("id").as_string());
        EXPECT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kOnline));
        return id;
    }
    std::string path_of(const Route& route, const std::string& id) {
        const std::string device(
            json::parse(call("GET", "/v1/devices").body).at("items").at(0).at("name").as_string());
        std::string path(route.path);
        for (const auto& [name, value] : std::map<std::string, std::string>{{"{host}", "host0"},
                                                                            {"{switch}", "switch0"},
                                                                            {"{device}", device},
                                                                            {"{id}", id},
                                                                            {"{tenant}", "blue"}})
            if (const auto at = path.find(name); at != std::string::npos)
                path.replace(at, name.size(), value);
        return path;
    }
    // Gets a resource, and again with the ETag of the first time: that tag, and the second answer. A switch
    // or an agent may be heard of between the two, which changes the times in what shows them; then the two
    // are asked for once more.
    std::pair<std::string, http::Response> got_again(const std::string& path) {
        for (int attempt = 1;; ++attempt) {
            const http::Response first = call("GET", path);
            EXPECT_EQ(first.status, 200U) << path;
            const std::string tag = first.headers.contains("ETag") ? first.headers.at("ETag") : "";
            http::Response second = call("GET", path, {}, {{"If-None-Match", "\"x\", " + tag}});
            EXPECT_EQ(second.status == 304U, second.headers.at("ETag") == tag) << path;
            if (second.status == 304U || attempt == 100) return {tag, std::move(second)};
        }
    }
    // The values of one member of a list's items.
    std::vector<std::string> listed(const std::string& path, std::map<std::string, std::string> query,
                                    const char* member) {
        const http::Response response = call("GET", path, std::move(query));
        EXPECT_EQ(response.status, 200U) << response.body;
        std::vector<std::string> result;
        const json::value page = json::parse(response.body);
        for (const json::value& item : page.at("items").as_array())
            result.emplace_back(item.at(member).as_string());
        return result;
    }

    Rig rig_;
    metrics::Registry metrics_;
    std::unique_ptr<RestApi> api_;
};

TEST_F(Resources, EachHasAnETagAndIsNotSentAgainToWhoHasIt) {
    const std::string id = compose();
    rig_.settle();
    int seen = 0;
    for (const Route& route : routes()) {
        if (route.method != "GET" || !is_resource(route)) continue;
        const std::string path = path_of(route, id);
        const auto [tag, second] = got_again(path);
        EXPECT_EQ(second.status, 304U) << path << second.body;
        EXPECT_THAT(second.body, IsEmpty());
        EXPECT_EQ(second.headers.at("ETag"), tag);
        EXPECT_EQ(call("GET", path, {}, {{"If-None-Match", "*"}}).status, 304U) << path;
        EXPECT_EQ(call("GET", path, {}, {{"If-None-Match", "\"x\""}}).status, 200U) << path;
        EXPECT_EQ(call("GET", path, {}, {{"If-None-Match", "x"}}).status, 400U) << path;
        ++seen;
    }
    EXPECT_GE(seen, 12);
}

TEST_F(Resources, AnETagChangesWithWhatItIsOf) {
    const std::string before = call("GET", "/v1/pool").headers.at("ETag");
    const std::string host = call("GET", "/v1/hosts/host0").headers.at("ETag");
    const std::string list = call("GET", "/v1/compositions").headers.at("ETag");
    compose();
    EXPECT_NE(call("GET", "/v1/pool").headers.at("ETag"), before);
    EXPECT_NE(call("GET", "/v1/hosts/host0").headers.at("ETag"), host);
    EXPECT_NE(call("GET", "/v1/compositions").headers.at("ETag"), list);
}

TEST_F(Resources, AReleaseHappensOnlyToTheRevisionThatWasSeen) {
    const std::string path = "/v1/compositions/" + compose();
    const std::string tag = call("GET", path).headers.at("ETag");
    for (const char* other : {"\"1\"", "\"999\"", "W/\"5\""}) {
        const http::Response refused = call("DELETE", path, {}, {{"If-Match", other}});
        EXPECT_EQ(refused.status, 412U) << other;
        EXPECT_THAT(refused.body, HasSubstr("precondition-failed"));
    }
    EXPECT_EQ(call("DELETE", path, {}, {{"If-Match", "5"}}).status, 400U);
    EXPECT_THAT(call("GET", path).body, HasSubstr("\"state\":\"Online\""));
    EXPECT_EQ(call("DELETE", path, {}, {{"If-Match", "\"x\", " + tag}}).status, 202U);
    // The same once more: it has changed by now.
    EXPECT_EQ(call("DELETE", path, {}, {{"If-Match", tag}}).status, 412U);
}

TEST_F(Resources, OfManyReleasesOfOneRevisionOneWins) {
    const std::string id = compose();
    const std::string tag = call("GET", "/v1/compositions/" + id).headers.at("ETag");
    std::vector<unsigned> statuses;
    rig_.run([](const http::Router& router, const std::string& which, const std::string& seen,
                std::vector<unsigned>& answers) -> boost::asio::awaitable<int> {
        const auto executor = co_await boost::asio::this_coro::executor;
        std::size_t ended = 0;
        for (int i = 0; i < 8; ++i) {
            http::Request request;
            request.method = "DELETE";
            request.path = "/v1/compositions/" + which;
            // Each asks for something that no other has asked for: force after no force is a change too.
            if (i > 0) request.query["force"] = "true";
            request.headers["If-Match"] = seen;
            boost::asio::co_spawn(executor, router.dispatch(std::move(request)),
                                  [&](const std::exception_ptr&, const http::Response& response) {
                                      answers.push_back(response.status);
                                      ++ended;
                                  });
        }
        boost::asio::steady_timer pause(executor);
        while (ended < 8) {
            pause.expires_after(std::chrono::milliseconds(1));
            co_await pause.async_wait(boost::asio::use_awaitable);
        }
        co_return 0;
    }(api_->router(), id, tag, statuses));
    EXPECT_EQ(std::ranges::count(statuses, 202U), 1);
    EXPECT_EQ(std::ranges::count(statuses, 412U), 7);
}

TEST_F(Resources, WhatCannotBeGotIsOnlyChangedUnconditionally) {
    const auto report = [&](http::Headers headers) {
        return call("PUT", "/v1/hosts/host0/observed", {}, std::move(headers), R"({"boot_id":"b"})").status;
    };
    EXPECT_EQ(report({{"If-Match", "\"1\""}}), 412U);
    EXPECT_EQ(report({{"If-Match", "*"}}), 204U);
    EXPECT_EQ(report({}), 204U);
}

TEST_F(Resources, ACompositionCanBeAskedForOnlyWhenTheListIsAsItWasSeen) {
    const std::string tag = call("GET", "/v1/compositions").headers.at("ETag");
    const std::string body = R"({"host":"host0","size":"256MiB"})";
    const http::Response first = call("POST", "/v1/compositions", {}, {{"If-Match", tag}}, body);
    EXPECT_EQ(first.status, 202U) << first.body;
    const http::Response second = call("POST", "/v1/compositions", {}, {{"If-Match", tag}}, body);
    EXPECT_EQ(second.status, 412U) << second.body;
    EXPECT_EQ(call("POST", "/v1/compositions", {}, {{"If-None-Match", "*"}}, body).status, 412U);
}

// --- Filters and pages ---

TEST_F(Resources, CompositionsAreFilteredByWhatTheyHave) {
    const std::string a =
        compose(R"({"host":"host0","size":"256MiB","tenant":"t1","labels":{"team":"1","x":"y"}})");
    const std::string b =
        compose(R"({"host":"host1","size":"256MiB","tenant":"t11","labels":{"team":"11"}})");
    const auto ids = [&](std::map<std::string, std::string> query) {
        return listed("/v1/compositions", std::move(query), "id");
    };
    EXPECT_THAT(ids({}), ElementsAre(a, b));
    EXPECT_THAT(ids({{"host", "host1"}}), ElementsAre(b));
    EXPECT_THAT(ids({{"host", "host"}}), IsEmpty());
    EXPECT_THAT(ids({{"tenant", "t1"}}), ElementsAre(a));
    EXPECT_THAT(ids({{"tenant", "t11"}}), ElementsAre(b));
    EXPECT_THAT(ids({{"label", "team=1"}}), ElementsAre(a));
    EXPECT_THAT(ids({{"label", "team"}}), ElementsAre(a, b));
    EXPECT_THAT(ids({{"label", "x=y"}}), ElementsAre(a));
    EXPECT_THAT(ids({{"label", "x="}}), IsEmpty());
    EXPECT_THAT(ids({{"state", "Online"}, {"switch", "switch0"}}), ElementsAre(a, b));
    EXPECT_THAT(ids({{"switch", "switch"}}), IsEmpty());
    const std::string device = listed("/v1/devices", {}, "name").front();
    EXPECT_THAT(ids({{"device", device}, {"tenant", "t1"}}), ElementsAre(a));
    EXPECT_THAT(ids({{"device", device.substr(0, device.size() - 1)}}), IsEmpty());
}

TEST_F(Resources, InventoryIsFilteredByWhatItIs) {
    compose();
    const std::string device = listed("/v1/devices", {}, "name").front();
    EXPECT_THAT(listed("/v1/devices", {{"kind", "mld"}, {"switch", "switch0"}}, "name"), ElementsAre(device));
    EXPECT_THAT(listed("/v1/devices", {{"kind", "sld"}}, "name"), IsEmpty());
    EXPECT_THAT(listed("/v1/devices", {{"host", "host0"}, {"present", "true"}}, "name"), ElementsAre(device));
    EXPECT_THAT(listed("/v1/devices", {{"host", "host1"}}, "name"), IsEmpty());
    EXPECT_THAT(listed("/v1/devices", {{"present", "false"}}, "name"), IsEmpty());
    EXPECT_EQ(call("GET", "/v1/devices", {{"kind", "ssd"}}).status, 400U);
    EXPECT_THAT(listed("/v1/hosts", {{"switch", "switch0"}}, "name"), ElementsAre("host0", "host1"));
    EXPECT_THAT(listed("/v1/hosts", {{"switch", "switch"}}, "name"), IsEmpty());
    EXPECT_THAT(listed("/v1/hosts", {{"connected", "false"}}, "name"), ElementsAre("host0", "host1"));
    EXPECT_EQ(call("GET", "/v1/hosts", {{"connected", "maybe"}}).status, 400U);
    EXPECT_THAT(listed("/v1/switches", {{"up", "true"}}, "name"), ElementsAre("switch0"));
    EXPECT_THAT(listed("/v1/switches", {{"up", "false"}}, "name"), IsEmpty());
}

TEST_F(Resources, APageGoesOnBehindItsTokenWhateverCameOrWent) {
    const http::Response first = call("GET", "/v1/hosts", {{"limit", "1"}});
    const json::value page = json::parse(first.body);
    EXPECT_EQ(page.at("items").at(0).at("name"), "host0");
    EXPECT_EQ(page.at("next"), "host0");
    EXPECT_THAT(listed("/v1/hosts", {{"limit", "1"}, {"page", "host0"}}, "name"), ElementsAre("host1"));
    // A host of that name need not exist any more.
    EXPECT_THAT(listed("/v1/hosts", {{"page", "host00"}}, "name"), ElementsAre("host1"));
    EXPECT_EQ(json::parse(call("GET", "/v1/hosts", {{"limit", "2"}}).body).at("next"), nullptr);
}

TEST_F(Resources, AHistoryHasTheStepsAndAllEvents) {
    const std::string id = compose();
    const std::string path = "/v1/compositions/" + id + "/history";
    const json::value history = json::parse(call("GET", path).body);
    EXPECT_EQ(history.at("complete"), true);
    std::vector<std::string> states;
    for (const json::value& event : history.at("items").as_array()) {
        EXPECT_EQ(event.at("composition"), json::value(id));
        if (event.at("type") == "composition.state") states.emplace_back(event.at("state").as_string());
    }
    EXPECT_THAT(states, ElementsAre("Pending", "Binding", "Onlining", "Online"));
    EXPECT_GE(history.at("steps").as_array().size(), 3U);
    // Page by page it is the same.
    std::vector<std::string> paged;
    std::map<std::string, std::string> query{{"limit", "1"}};
    for (;;) {
        const json::value page = json::parse(call("GET", path, query).body);
        for (const json::value& event : page.at("items").as_array())
            if (event.at("type") == "composition.state") paged.emplace_back(event.at("state").as_string());
        EXPECT_EQ(page.at("complete"), true);
        if (page.at("next").is_null()) break;
        query["page"] = std::string(page.at("next").as_string());
    }
    EXPECT_EQ(paged, states);
    EXPECT_EQ(call("GET", "/v1/compositions/c-1/history").status, 404U);
    EXPECT_EQ(call("GET", path, {{"page", "x"}}).status, 400U);
}

TEST_F(Resources, AQueryParameterGivenTwiceIsRefused) {
    http::Request request;
    request.method = "GET";
    request.path = "/v1/hosts";
    request.query["limit"] = "1";
    request.repeated_parameter = "limit";
    const http::Response response = rig_.run(api_->router().dispatch(std::move(request)));
    EXPECT_EQ(response.status, 400U);
    EXPECT_THAT(response.body, HasSubstr("limit is given twice"));
}

}  // namespace
}  // namespace memtide::fm

// Who may do what, over every route: roles, tenants that must not learn of each other, quotas.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/rest/api.h"
#include "fabric-manager/rest/openapi.h"
#include "fabric-manager/rest/routes.h"
#include "fabric-manager/security/gate.h"
#include "tests/fabric-manager/engine/rig.h"
#include "tests/fabric-manager/security/temp_folder.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

// Remembers what a stream writes, and ends it after the first heartbeat.
class Recorder : public http::StreamWriter {
  public:
    boost::asio::awaitable<Result<>> write(std::string chunk) override {
        text += chunk;
        if (chunk.find("heartbeat") != std::string::npos)
            co_return fail(ErrorCode::kUnavailable, "seen enough");
        co_return Result<>{};
    }
    std::string text;
};

class Authorisation : public testing::Test {
  protected:
    void SetUp() override {
        rig_.fabric->add_mld(2, {1, 1, 1, 1}, 4);
        rig_.config.tenants = {{"blue", {.bytes = mebibytes(512), .compositions = {}, .hosts = {}}},
                               {"red", {.bytes = {}, .compositions = 1, .hosts = {HostId("host1")}}}};
        rig_.start_ready();
        for (const Role role : kRoles) {
            std::optional<std::string> tenant;
            std::optional<HostId> host;
            if (role == Role::kTenant) tenant = "blue";
            if (role == Role::kAgent) host = HostId("host0");
            tokens_[std::string(to_string(role))] = add(role, tenant, host);
        }
        tokens_["red"] = add(Role::kTenant, "red");
        GateOptions options;
        options.authentication = true;
        options.tokens = folder_.file("tokens");
        AuditFileOptions audit;
        audit.path = folder_.file("audit.log");
        gate_ = *Gate::open(options, *open_audit_file(audit), metrics_);
        api_ = std::make_unique<RestApi>(
            *rig_.manager, metrics_,
            RestOptions{.heartbeat = std::chrono::milliseconds(20), .gate = gate_.get()});
    }
    std::string add(Role role, std::optional<std::string> tenant, std::optional<HostId> host = {}) {
        const NewToken token = make_token();
        EXPECT_TRUE(edit_tokens(folder_.file("tokens"), [&](Tokens& tokens) -> Result<> {
            TokenRecord record;
            record.id = token.id;
            record.hash = token.hash;
            record.role = role;
            record.tenant = std::move(tenant);
            record.host = std::move(host);
            tokens.push_back(record);
            return {};
        }));
        return token.text;
    }
    // As whoever has that name in tokens_; "" is nobody.
    http::Response call(const std::string& who, const std::string& method, const std::string& path,
                        std::string body = {}, std::map<std::string, std::string> query = {},
                        http::Headers headers = {}) {
        http::Request request;
        request.method = method;
        request.path = path;
        request.peer = "192.0.2.1:1000";
        request.query = std::move(query);
        request.headers = std::move(headers);
        if (!who.empty()) request.headers["Authorization"] = "Bearer " + tokens_.at(who);
        if (!body.empty()) request.headers["Content-Type"] = "application/json";
        request.body = std::move(body);
        return rig_.run(api_->router().dispatch(std::move(request)));
    }
    std::string compose(const std::string& who, const std::string& more = "", http::Headers headers = {}) {
        const http::Response response = call(who, "POST", "/v1/compositions",
                                             R"({"host":"host1","size":"256MiB")" + more + "}", {}, headers);
        EXPECT_EQ(response.status, 202U) << response.body;
        return response.status == 202 ? std::string(json::parse(response.body).at("id").as_string()) : "";
    }
    std::set<std::string> listed(const std::string& who, const std::string& path, const char* member) {
        std::set<std::string> result;
        const http::Response response = call(who, "GET", path);
        EXPECT_EQ(response.status, 200U) << response.body;
        const json::value page = json::parse(response.body);
        for (const json::value& item : page.at("items").as_array())
            result.insert(std::string(item.at(member).as_string()));
        return result;
    }
    static std::string code(const http::Response& response) {
        return std::string(json::parse(response.body).at("code").as_string());
    }
    std::string events(const std::string& who, std::map<std::string, std::string> query) {
        const http::Response response = call(who, "GET", "/v1/events", "", std::move(query));
        EXPECT_TRUE(response.stream) << response.body;
        Recorder recorder;
        const auto read = [](const http::Response& from, Recorder& into) -> boost::asio::awaitable<bool> {
            co_await from.stream(into);
            co_return true;
        };
        rig_.run(read(response, recorder));
        return recorder.text;
    }

    TempFolder folder_;
    Rig rig_;
    metrics::Registry metrics_;
    std::map<std::string, std::string> tokens_;
    std::unique_ptr<Gate> gate_;
    std::unique_ptr<RestApi> api_;
};

TEST_F(Authorisation, EveryRouteIsOpenToTheRolesThatHaveItsPrivilegeAndToNoOther) {
    const std::string id = compose("tenant");
    const std::map<std::string, std::string> values{{"{host}", "host0"},
                                                    {"{switch}", "switch0"},
                                                    {"{device}", "nothing"},
                                                    {"{id}", id},
                                                    {"{tenant}", "blue"}};
    for (const Route& route : routes()) {
        std::string path(route.path);
        for (const auto& [name, value] : values)
            if (const auto at = path.find(name); at != std::string::npos)
                path.replace(at, name.size(), value);
        // Refused for its query, if it is let through: nothing happens then.
        const std::map<std::string, std::string> query{{"no-such-parameter", "1"}};
        const unsigned nobody = call("", std::string(route.method), path, "", query).status;
        EXPECT_EQ(nobody, route.privilege == Privilege::kPublic ? 400U : 401U) << route.operation;
        for (const Role role : kRoles) {
            const http::Response response =
                call(std::string(to_string(role)), std::string(route.method), path, "", query);
            EXPECT_EQ(response.status, has_privilege(role, route.privilege) ? 400U : 403U)
                << route.operation << " as " << to_string(role) << response.body;
        }
    }
}

TEST_F(Authorisation, TheDocumentSaysWhichRoutesArePublic) {
    const json::value document = json::parse(openapi_document());
    for (const Route& route : routes()) {
        std::string method(route.method);
        for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
        const json::object& operation = document.at("paths").at(route.path).at(method).as_object();
        EXPECT_EQ(operation.contains("security"), route.privilege == Privilege::kPublic) << route.operation;
        EXPECT_EQ(operation.at("responses").as_object().contains("403"),
                  route.privilege != Privilege::kPublic)
            << route.operation;
    }
}

TEST_F(Authorisation, AnotherTenantsCompositionIsAnsweredOnEveryRouteAsOneThatDoesNotExist) {
    const std::string foreign = compose("tenant");
    const std::string unknown = "c-0000000000";
    const auto same_but_for_the_id = [&](http::Response a, http::Response b) {
        for (const std::string* id : {&foreign, &unknown})
            for (std::string* body : {&a.body, &b.body})
                if (const auto at = body->find(*id); at != std::string::npos)
                    body->replace(at, id->size(), "ID");
        EXPECT_EQ(a.status, b.status);
        EXPECT_EQ(a.body, b.body);
        EXPECT_EQ(a.headers, b.headers);
    };
    int asked = 0;
    for (const Route& route : routes()) {
        const auto at = route.path.find("{id}");
        if (at == std::string_view::npos) continue;
        const auto path = [&](const std::string& id) { return std::string(route.path).replace(at, 4, id); };
        using Query = std::map<std::string, std::string>;
        for (const Query& query : {Query{}, Query{{"wait", "Online"}, {"timeout", "10ms"}},
                                   Query{{"wait", "x"}}, Query{{"force", "true"}}, Query{{"nonsense", ""}}})
            for (const http::Headers& headers : {http::Headers{}, http::Headers{{"If-Match", "\"1\""}},
                                                 http::Headers{{"If-None-Match", "\"1\""}}})
                for (const char* body : {"", "{}", "{", R"({"size":"512MiB"})"}) {
                    const std::string method(route.method);
                    const auto mine = call("red", method, path(foreign), body, query, headers);
                    same_but_for_the_id(mine, call("red", method, path(unknown), body, query, headers));
                    EXPECT_EQ(mine.status, 404U) << route.operation << mine.body;
                    ++asked;
                }
    }
    EXPECT_GE(asked, 100);
    EXPECT_EQ(rig_.get(CompositionId(foreign)).release_requested, false);
    EXPECT_EQ(call("tenant", "GET", "/v1/compositions/" + foreign).status, 200U);
}

TEST_F(Authorisation, ATenantsListsHaveItsOwnOnly) {
    const std::string blue = compose("tenant");
    const std::string red = compose("red");
    const std::string nobodys = compose("operator");
    EXPECT_EQ(listed("tenant", "/v1/compositions", "id"), std::set{blue});
    EXPECT_EQ(listed("red", "/v1/compositions", "id"), std::set{red});
    EXPECT_EQ(listed("viewer", "/v1/compositions", "id"), (std::set{blue, red, nobodys}));
    const auto asked_for = [&](const std::string& tenant) {
        return call("tenant", "GET", "/v1/compositions", "", {{"tenant", tenant}}).body;
    };
    EXPECT_EQ(asked_for("red"), asked_for("nobody"));
    EXPECT_THAT(asked_for("red"), Not(HasSubstr(red)));
    EXPECT_THAT(asked_for("blue"), HasSubstr(blue));
    EXPECT_EQ(listed("tenant", "/v1/tenants", "name"), std::set<std::string>{"blue"});
    EXPECT_EQ(listed("viewer", "/v1/tenants", "name"), (std::set<std::string>{"blue", "red"}));
    const auto foreign = call("tenant", "GET", "/v1/tenants/red");
    EXPECT_EQ(foreign.status, 404U);
    EXPECT_THAT(foreign.body, HasSubstr("there is no tenant named red"));
}

TEST_F(Authorisation, ATenantsEventsAreThoseOfItsOwnCompositions) {
    const std::string blue = compose("tenant");
    const std::string red = compose("red");
    ASSERT_TRUE(rig_.reaches(CompositionId(blue), CompositionState::kOnline));
    ASSERT_TRUE(rig_.reaches(CompositionId(red), CompositionState::kOnline));
    const std::string seen = events("tenant", {{"after", "0"}});
    EXPECT_THAT(seen, HasSubstr(blue));
    EXPECT_THAT(seen, Not(HasSubstr(red)));
    EXPECT_THAT(seen, Not(HasSubstr("switch.up")));
    EXPECT_THAT(events("viewer", {{"after", "0"}}), testing::AllOf(HasSubstr(blue), HasSubstr(red)));
}

TEST_F(Authorisation, AStreamEndsWhenItsTokenIsRevoked) {
    tokens_["leaver"] = add(Role::kViewer, {});
    gate_->tick();
    const http::Response response = call("leaver", "GET", "/v1/events", "", {{"after", "0"}});
    ASSERT_TRUE(response.stream) << response.body;
    ASSERT_TRUE(edit_tokens(folder_.file("tokens"), [](Tokens& tokens) -> Result<> {
        tokens.pop_back();
        return {};
    }));
    gate_->tick();
    Recorder recorder;
    const auto read = [](const http::Response& from, Recorder& into) -> boost::asio::awaitable<bool> {
        co_await from.stream(into);
        co_return true;
    };
    rig_.run(read(response, recorder));
    EXPECT_THAT(recorder.text, Not(HasSubstr("data:")));
}

TEST_F(Authorisation, ATenantsCompositionIsItsOwnAndNamingAnotherTenantIsRefused) {
    const std::string id = compose("tenant");
    EXPECT_EQ(rig_.get(CompositionId(id)).tenant, "blue");
    const auto other =
        call("tenant", "POST", "/v1/compositions", R"({"host":"host1","size":"256MiB","tenant":"red"})");
    EXPECT_EQ(other.status, 403U);
    EXPECT_EQ(code(other), "forbidden");
    EXPECT_EQ(compose("operator", R"(,"tenant":"red")").substr(0, 2), "c-");
}

TEST_F(Authorisation, ATenantMayNotForce) {
    const std::string id = compose("tenant");
    EXPECT_EQ(call("tenant", "DELETE", "/v1/compositions/" + id, "", {{"force", "true"}}).status, 403U);
    EXPECT_EQ(call("tenant", "DELETE", "/v1/compositions/" + id).status, 202U);
}

TEST_F(Authorisation, IdempotencyKeysAreATenantsOwn) {
    const http::Headers key{{"Idempotency-Key", "same"}};
    const std::string blue = compose("tenant", "", key);
    const std::string red = compose("red", "", key);
    EXPECT_NE(blue, red);
    EXPECT_EQ(compose("tenant", "", key), blue);
    EXPECT_NE(compose("operator", "", key), blue);
}

TEST_F(Authorisation, AQuotaIsHeldAndExplained) {
    compose("tenant");
    compose("tenant");
    const auto third = call("tenant", "POST", "/v1/compositions", R"({"host":"host1","size":"256MiB"})");
    EXPECT_EQ(third.status, 409U);
    EXPECT_EQ(code(third), "quota-exceeded");
    EXPECT_THAT(third.body, HasSubstr("uses 512MiB of the 512MiB"));
    const json::value status = json::parse(call("tenant", "GET", "/v1/tenants/blue").body);
    EXPECT_EQ(status.at("bytes"), 512 << 20);
    EXPECT_EQ(status.at("bytes_allowed"), 512 << 20);
    EXPECT_EQ(status.at("compositions"), 2);
    EXPECT_TRUE(status.at("compositions_allowed").is_null());
    // Whoever composes on behalf of the tenant is held to it, too.
    EXPECT_EQ(code(call("admin", "POST", "/v1/compositions",
                        R"({"host":"host1","size":"256MiB","tenant":"blue"})")),
              "quota-exceeded");
    EXPECT_EQ(code(call("red", "POST", "/v1/compositions", R"({"host":"host0","size":"256MiB"})")),
              "host-not-allowed");
    EXPECT_EQ(code(call("admin", "POST", "/v1/compositions",
                        R"({"host":"host1","size":"256MiB","tenant":"green"})")),
              "unknown-tenant");
}

TEST_F(Authorisation, TwoAtOnceDoNotExceedAQuotaTogether) {
    std::vector<std::optional<http::Response>> answers(4);
    for (auto& answer : answers) {
        http::Request request;
        request.method = "POST";
        request.path = "/v1/compositions";
        request.headers = {{"Authorization", "Bearer " + tokens_.at("red")},
                           {"Content-Type", "application/json"}};
        request.body = R"({"host":"host1","size":"256MiB"})";
        boost::asio::co_spawn(
            rig_.io(), api_->router().dispatch(std::move(request)),
            [&answer](const std::exception_ptr&, http::Response response) { answer = std::move(response); });
    }
    ASSERT_TRUE(rig_.run_until(
        [&] { return std::ranges::all_of(answers, [](const auto& answer) { return answer.has_value(); }); }));
    EXPECT_EQ(std::ranges::count_if(answers, [](const auto& answer) { return answer->status == 202; }), 1);
}

TEST_F(Authorisation, AQuotaIsFreeAgainOnceTheMemoryIs) {
    const std::string id = compose("red");
    ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kOnline));
    EXPECT_EQ(code(call("red", "POST", "/v1/compositions", R"({"host":"host1","size":"256MiB"})")),
              "quota-exceeded");
    call("red", "DELETE", "/v1/compositions/" + id);
    ASSERT_TRUE(rig_.reaches(CompositionId(id), CompositionState::kReleased));
    compose("red");
}

TEST_F(Authorisation, ReadinessDoesNotTellStrangersAboutTheFabric) {
    EXPECT_EQ(call("", "GET", "/readyz").status, 200U);
    EXPECT_EQ(json::parse(call("", "GET", "/readyz").body).at("reasons").as_array().size(), 0U);
}

TEST_F(Authorisation, EveryDecisionIsInTheAuditLogAndNoToken) {
    const std::string id = compose("tenant");
    call("red", "GET", "/v1/compositions/" + id);
    call("viewer", "DELETE", "/v1/compositions/" + id);
    call("agent", "PUT", "/v1/hosts/host1/observed", R"({"boot_id":"b"})");
    const std::string log = folder_.read("audit.log");
    EXPECT_THAT(log, HasSubstr("\"object\":\"/v1/compositions/" + id + "\""));
    EXPECT_THAT(log, HasSubstr("another tenant's composition"));
    EXPECT_THAT(log, HasSubstr("role viewer lacks change-compositions"));
    EXPECT_THAT(log, HasSubstr("another host's"));
    for (const auto& [who, token] : tokens_) EXPECT_THAT(log, Not(HasSubstr(token.substr(14)))) << who;
}

}  // namespace
}  // namespace memtide::fm

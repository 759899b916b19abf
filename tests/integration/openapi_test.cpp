// Walks every route of a running manager with an emulated switch, and holds every answer to what
// /v1/openapi.json says of it.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "tests/integration/described_client.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

namespace json = boost::json;

class Described : public Fabric {
  protected:
    void SetUp() override {
        ManagerOptions options;
        options.more = "tenants: [{name: blue, bytes: 1GiB, hosts: [host0, host1]}]\n";
        run_all({}, options);
        client_.emplace(manager_url(folder_));
    }

    std::string compose_online() {
        const RestAnswer created =
            client_->call("POST /v1/compositions", "/v1/compositions", R"({"host":"host0","size":"256MiB"})");
        EXPECT_EQ(created.status, 202U) << created.body;
        std::string id = text(created.json, "id");
        expect_state(id, "Online");
        return id;
    }
    // A path of the operation that leads somewhere, or nowhere.
    std::string path_of(const std::string& operation, bool exists = true) {
        std::string path = operation.substr(operation.find(' ') + 1);
        const std::map<std::string, std::string> there{
            {"{host}", "host0"},    {"{switch}", "switch0"},
            {"{device}", device()}, {"{serial}", "0x4d54000100000001"},
            {"{id}", id_},          {"{tenant}", "blue"}};
        for (const auto& [name, value] : there)
            if (const auto at = path.find(name); at != std::string::npos)
                path.replace(at, name.size(), exists ? value : "nothing");
        return path;
    }
    std::string device() { return text(rest_.get("/v1/devices").json.at("items").at(0), "name"); }
    std::set<std::string> gets() {
        std::set<std::string> result;
        for (const std::string& operation : client_->operations())
            if (operation.starts_with("GET ")) result.insert(operation);
        return result;
    }
    // A stream has no end of its own.
    static std::string ending(const std::string& operation) {
        return operation == "GET /v1/events" ? "?after=0&follow=false" : "";
    }

    std::optional<DescribedClient> client_;
    std::string id_;
};

TEST_F(Described, EveryGetOfWhatIsThereInEveryStateOfAComposition) {
    id_ = compose_online();
    for (int round = 0; round < 2; ++round) {
        for (const std::string& operation : gets())
            EXPECT_EQ(client_->call(operation, path_of(operation) + ending(operation)).status, 200U)
                << operation;
        if (round > 0) break;
        const std::string released = "DELETE /v1/compositions/{id}";
        EXPECT_EQ(client_->call(released, path_of(released)).status, 202U);
        for (const char* state : {"Draining", "Unbinding", "Erasing", "Released"})
            client_->call("GET /v1/compositions/{id}",
                          path_of("GET /v1/compositions/{id}") + "?timeout=5s&wait=" + state);
        EXPECT_EQ(client_->call(released, path_of(released)).status, 409U);
    }
}

TEST_F(Described, AFailedCompositionIsDescribedToo) {
    // Carved LDs, held memory, a host that does not answer: what makes the rarer members appear.
    agents_[0]->behave(FakeAgent::held_by(7, "database"));
    id_ = text(client_
                   ->call("POST /v1/compositions", "/v1/compositions",
                          R"({"host":"host0","size":"256MiB","tenant":"blue","labels":{"a":"b"},"ttl":3600})")
                   .json,
               "id");
    expect_state(id_, "Online");
    client_->call("DELETE /v1/compositions/{id}", "/v1/compositions/" + id_);
    EXPECT_TRUE(eventually([&] {
        const auto answer = client_->call("GET /v1/compositions/{id}", "/v1/compositions/" + id_);
        return !answer.json.at("holders").as_array().empty();
    }));
    EXPECT_EQ(client_->call("DELETE /v1/compositions/{id}", "/v1/compositions/" + id_ + "?force=true").status,
              202U);
    expect_state(id_, "Released");
    for (const std::string& operation : gets())
        EXPECT_EQ(client_->call(operation, path_of(operation) + ending(operation)).status, 200U) << operation;
}

TEST_F(Described, EveryGetOfWhatIsNotThere) {
    id_ = compose_online();
    int with_names = 0;
    for (const std::string& operation : client_->operations()) {
        if (operation.find('{') == std::string::npos) continue;
        ++with_names;
        std::string body;
        if (operation.starts_with("PUT ")) body = R"({"boot_id":"b"})";
        if (operation.starts_with("PATCH ")) body = R"({"ttl":60})";
        EXPECT_EQ(client_->call(operation, path_of(operation, false), body).status, 404U) << operation;
    }
    EXPECT_GE(with_names, 7);
}

TEST_F(Described, NoOperationTakesAQueryParameterThatIsNotDescribed) {
    id_ = compose_online();
    for (const std::string& operation : client_->operations()) {
        const std::string path = path_of(operation);
        const std::string body = operation.starts_with("P") ? "{}" : "";
        const RestAnswer unknown = client_->call(operation, path + "?no-such=1", body);
        EXPECT_EQ(unknown.status, 400U) << operation;
        EXPECT_EQ(unknown.code(), "invalid-request");
        EXPECT_NE(text(unknown.json, "detail").find("no-such"), std::string::npos) << unknown.body;
    }
    EXPECT_EQ(state_of(id_), "Online");
}

TEST_F(Described, EveryQueryParameterIsTakenOnceAndRefusedTwice) {
    id_ = compose_online();
    const std::map<std::string, std::string> values{
        {"limit", "1"},        {"page", "1"},         {"host", "host0"},     {"state", "Online"},
        {"tenant", "t"},       {"label", "a=b"},      {"switch", "switch0"}, {"device", "x"},
        {"connected", "true"}, {"up", "true"},        {"kind", "mld"},       {"present", "true"},
        {"wait", "Online"},    {"timeout", "10ms"},   {"after", "0"},        {"follow", "false"},
        {"type", "switch"},    {"composition", "c-1"}};
    int taken = 0;
    for (const std::string& operation : gets()) {
        const json::value* const given =
            client_->description(operation).as_object().if_contains("parameters");
        if (given == nullptr) continue;
        for (const json::value& item : given->as_array()) {
            const json::object* parameter = &item.as_object();
            if (const auto* reference = parameter->if_contains("$ref"))
                parameter = &client_->document()
                                 .at_pointer(std::string_view(reference->as_string()).substr(1))
                                 .as_object();
            if (parameter->at("in") != "query") continue;
            const std::string name(parameter->at("name").as_string());
            ASSERT_TRUE(values.contains(name))
                << operation << " has a parameter that this test does not know: " << name;
            const std::string pair = name + "=" + values.at(name);
            const std::string end = operation == "GET /v1/events" && name != "follow" ? "&follow=false" : "";
            EXPECT_EQ(client_->call(operation, path_of(operation) + "?" + pair + end).status, 200U)
                << operation << pair;
            EXPECT_EQ(client_->call(operation, path_of(operation) + "?" + pair + "&" + pair + end).status,
                      400U)
                << operation << pair;
            ++taken;
        }
    }
    EXPECT_GE(taken, 25);
}

TEST_F(Described, BodiesAsTheyAreDescribedAreTakenAndOthersAreNot) {
    const json::value& media =
        client_->description("POST /v1/compositions").at("requestBody").at("content").at("application/json");
    EXPECT_EQ(client_->call("POST /v1/compositions", "/v1/compositions", json::serialize(media.at("example")))
                  .status,
              202U);
    const std::string name(std::string_view(media.at("schema").at("$ref").as_string()).substr(1));
    const json::object& schema = client_->document().at_pointer(name).as_object();
    // Each member with a value for it; all of them together must be accepted.
    const std::map<std::string, json::value> values{
        {"host", "host1"},  {"size", 268435456},
        {"tenant", "blue"}, {"labels", json::object{{"a", "b"}}},
        {"ways", 1},        {"placement", json::object{{"policy", "spread"}}},
        {"ttl", 3600}};
    json::object full;
    for (const auto& [key, described] : schema.at("properties").as_object())
        if (const auto value = values.find(std::string(key)); value != values.end())
            full[key] = value->second;
    EXPECT_EQ(full.size(), schema.at("properties").as_object().size());
    EXPECT_EQ(client_->call("POST /v1/compositions", "/v1/compositions", json::serialize(full)).status, 202U);
    for (const json::value& required : schema.at("required").as_array()) {
        json::object without = full;
        without.erase(required.as_string());
        EXPECT_EQ(client_->call("POST /v1/compositions", "/v1/compositions", json::serialize(without)).status,
                  400U);
    }
    full["no-such"] = 1;
    EXPECT_EQ(client_->call("POST /v1/compositions", "/v1/compositions", json::serialize(full)).status, 400U);
}

TEST_F(Described, RefusalsOfEveryKindAreDescribed) {
    id_ = compose_online();
    const std::string post = "POST /v1/compositions";
    const std::string target = "/v1/compositions";
    const auto refused = [&](const std::string& body, unsigned status, http::Headers headers = {}) {
        EXPECT_EQ(client_->call(post, target, body, std::move(headers)).status, status) << body;
    };
    refused("{", 400);
    refused(R"({"host":"nobody","size":"256MiB"})", 422);
    refused(R"({"host":"host0","size":0})", 422);
    refused(R"({"host":"host0","size":"1GiB"})", 409);
    refused(R"({"host":"host0","size":"1TiB"})", 422);
    refused("{}", 415, {{"Content-Type", "text/plain"}});
    refused("{}", 415, {{"Content-Encoding", "gzip"}});
    refused("{}", 415, {{"Content-Type", "application/json; charset=latin1"}});
    refused("{}", 412, {{"If-Match", "\"x\""}});
    const std::string one = "/v1/compositions/" + id_;
    EXPECT_EQ(client_->call("DELETE /v1/compositions/{id}", one, "", {{"If-Match", "\"0\""}}).status, 412U);
    for (const std::string& operation : gets()) {
        if (operation.find("/v1/") == std::string::npos || operation == "GET /v1/events") continue;
        EXPECT_EQ(client_->call(operation, path_of(operation), "", {{"If-None-Match", "*"}}).status, 304U)
            << operation;
    }
    EXPECT_EQ(
        client_
            ->call("PUT /v1/hosts/{host}/observed", "/v1/hosts/host1/observed",
                   fmt::format(R"({{"boot_id":"b","regions":[{{"composition":"{}","region":0,"serials":)"
                               R"(["0x4d54000100000001"],"state":"online"}}]}})",
                               id_))
            .status,
        422U);
}

}  // namespace
}  // namespace memtide::test

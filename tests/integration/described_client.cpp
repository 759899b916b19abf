#include "tests/integration/described_client.h"

#include <algorithm>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/fabric-manager/rest/schema.h"

namespace memtide::test {

namespace json = boost::json;

namespace {

std::pair<std::string, std::string> split(const std::string& operation) {
    const auto space = operation.find(' ');
    std::string method = operation.substr(0, space);
    std::ranges::transform(method, method.begin(), [](char c) { return static_cast<char>(c - 'A' + 'a'); });
    return {method, operation.substr(space + 1)};
}

}  // namespace

DescribedClient::DescribedClient(const std::string& url)
    : rest_(url), document_(rest_.get("/v1/openapi.json").json) {}

const json::value& DescribedClient::resolve(const json::value& value) const {
    const auto* const object = value.if_object();
    const auto* const reference = object == nullptr ? nullptr : object->if_contains("$ref");
    if (reference == nullptr) return value;
    return document_.at_pointer(std::string_view(reference->as_string()).substr(1));
}

std::set<std::string> DescribedClient::operations() const {
    std::set<std::string> result;
    for (const auto& [path, item] : document_.at("paths").as_object())
        for (const auto& [method, operation] : item.as_object()) {
            std::string name(method);
            std::ranges::transform(name, name.begin(),
                                   [](char c) { return static_cast<char>(c - 'a' + 'A'); });
            result.insert(name + " " + std::string(path));
        }
    return result;
}

const json::value& DescribedClient::description(const std::string& operation) const {
    const auto [method, path] = split(operation);
    return document_.at("paths").at(path).at(method);
}

RestAnswer DescribedClient::call(const std::string& operation, const std::string& target, std::string body,
                                 http::Headers headers) {
    if (!body.empty()) headers.try_emplace("Content-Type", "application/json");
    RestAnswer answer =
        rest_.call(operation.substr(0, operation.find(' ')), target, std::move(body), std::move(headers));
    seen_[operation].insert(answer.status);
    const std::string what = operation + " as " + target + ": " + std::to_string(answer.status);
    const json::object& responses = description(operation).at("responses").as_object();
    const json::value* const described = responses.if_contains(std::to_string(answer.status));
    EXPECT_NE(described, nullptr) << what << " is not described: " << answer.body;
    if (described == nullptr) return answer;
    check_headers(what, resolve(*described), answer);
    check_body(what, resolve(*described), answer);
    return answer;
}

void DescribedClient::check_headers(const std::string& what, const json::value& response,
                                    const RestAnswer& answer) {
    const json::value* const headers = response.as_object().if_contains("headers");
    const bool has_tag = headers != nullptr && headers->as_object().contains("ETag");
    EXPECT_EQ(answer.headers.contains("ETag"), has_tag) << what;
}

void DescribedClient::check_body(const std::string& what, const json::value& response,
                                 const RestAnswer& answer) const {
    const json::value* const content = response.as_object().if_contains("content");
    if (content == nullptr) {
        EXPECT_EQ(answer.body, "") << what << " has a body, and none is described";
        return;
    }
    const auto header = answer.headers.find("Content-Type");
    ASSERT_NE(header, answer.headers.end()) << what;
    const std::string type = header->second.substr(0, header->second.find(';'));
    const json::value* const body = content->as_object().if_contains(type);
    ASSERT_NE(body, nullptr) << what << ": " << type << " is not described";
    if (!type.ends_with("json")) return;
    auto schema = fm::Schema::of(document_, body->at("schema"));
    for (const std::string& mistake : schema.strictly().mistakes(answer.json))
        ADD_FAILURE() << what << ": " << mistake << "\n" << answer.body;
}

}  // namespace memtide::test

// Holds the route table, the OpenAPI document and the problem codes together.
#include "fabric-manager/rest/openapi.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json/json.h"
#include "fabric-manager/model/tenant.h"
#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/routes.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;

// "GET /v1/pool" -> operation id.
std::map<std::string, std::string> described() {
    std::map<std::string, std::string> result;
    const json::value document = json::parse(openapi_document());
    for (const auto& [path, item] : document.at("paths").as_object())
        for (const auto& [method, operation] : item.as_object()) {
            std::string key(method);
            std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::toupper(c); });
            result[key + " " + std::string(path)] = operation.at("operationId").as_string();
        }
    return result;
}

// Every "$ref" in the document.
void references(const json::value& value, std::set<std::string>& found) {
    if (const auto* object = value.if_object()) {
        for (const auto& [key, member] : *object)
            if (key == "$ref")
                found.insert(std::string(member.as_string()));
            else
                references(member, found);
    }
    if (const auto* array = value.if_array())
        for (const json::value& element : *array) references(element, found);
}

TEST(Openapi, SaysNothingTwice) {
    const auto document = memtide::json::parse(openapi_document());
    EXPECT_TRUE(document) << document.error().message;
}

TEST(Openapi, EveryRouteIsDescribedAndEveryDescriptionIsARoute) {
    std::map<std::string, std::string> served;
    for (const Route& route : routes())
        served[std::string(route.method) + " " + std::string(route.path)] = route.operation;
    EXPECT_EQ(served, described());
}

// The query parameters of a described operation.
std::set<std::string> parameters_of(const json::value& document, const json::value& operation) {
    std::set<std::string> names;
    const json::value* given = operation.as_object().if_contains("parameters");
    if (given == nullptr) return names;
    for (const json::value& item : given->as_array()) {
        const json::value* parameter = &item;
        boost::system::error_code error;
        if (const json::value* reference = item.as_object().if_contains("$ref"))
            parameter = document.find_pointer(std::string(reference->as_string()).substr(1), error);
        if (parameter->at("in") == "query") names.insert(std::string(parameter->at("name").as_string()));
    }
    return names;
}

TEST(Openapi, EveryRouteTakesTheQueryParametersThatAreDescribed) {
    const json::value document = json::parse(openapi_document());
    for (const Route& route : routes()) {
        std::string method(route.method);
        std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
        const json::value& operation = document.at("paths").at(route.path).at(method);
        std::set<std::string> taken;
        std::istringstream names{std::string(route.query)};
        for (std::string name; names >> name;) taken.insert(name);
        EXPECT_EQ(taken, parameters_of(document, operation)) << route.operation;
    }
}

TEST(Openapi, ItIsVersion31AndAllItsReferencesLeadSomewhere) {
    const json::value document = json::parse(openapi_document());
    EXPECT_EQ(document.at("openapi"), "3.1.0");
    std::set<std::string> found;
    references(document, found);
    EXPECT_GT(found.size(), 10U);
    for (const std::string& reference : found) {
        boost::system::error_code error;
        ASSERT_TRUE(reference.starts_with("#/")) << reference;
        EXPECT_NE(document.find_pointer(reference.substr(1), error), nullptr) << reference;
    }
}

TEST(Openapi, EveryPathParameterIsDescribed) {
    const json::value document = json::parse(openapi_document());
    for (const auto& [path, item] : document.at("paths").as_object()) {
        const std::string text(path);
        const auto open = text.find('{');
        if (open == std::string::npos) continue;
        const std::string name = text.substr(open + 1, text.find('}') - open - 1);
        for (const auto& [method, operation] : item.as_object()) {
            std::set<std::string> names;
            for (const json::value& parameter : operation.at("parameters").as_array())
                if (parameter.as_object().contains("in") && parameter.at("in") == "path")
                    names.insert(std::string(parameter.at("name").as_string()));
            EXPECT_EQ(names, std::set<std::string>{name}) << text << " " << std::string(method);
        }
    }
}

TEST(Openapi, EveryRefusalHasADocumentedStatusOfItsOperation) {
    // What create_composition may be refused with must stand in its description.
    const json::value document = json::parse(openapi_document());
    const json::object& responses =
        document.at_pointer("/paths/~1v1~1compositions/post/responses").as_object();
    for (const std::string_view code :
         {problem::kInvalidJson, problem::kInvalidRequest, problem::kUnknownHost, problem::kSizeZero,
          problem::kSizeNegative, problem::kSizeNotMultiple, problem::kExceedsFree,
          problem::kExceedsLargestDevice, problem::kNoFittingDevice, problem::kHostNotReachable,
          problem::kNoFreeVppb, problem::kIdempotencyConflict, problem::kStorageFull,
          problem::kUnsupportedMediaType, problem::kShuttingDown, problem::kUnknownTenant,
          problem::kQuotaExceeded}) {
        const std::string status = std::to_string(status_of({std::string(code), ""}));
        ASSERT_TRUE(responses.contains(status)) << code << " " << status;
        EXPECT_THAT(std::string(responses.at(status).at("description").as_string()),
                    testing::HasSubstr(std::string(code)));
    }
}

}  // namespace
}  // namespace memtide::fm

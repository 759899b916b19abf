#include "fabric-manager/rest/openapi_common.h"

#include <algorithm>
#include <string>

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "common/json/write.h"
#include "fabric-manager/rest/openapi.h"
#include "fabric-manager/rest/preconditions.h"
#include "fabric-manager/rest/problem_table.h"

namespace memtide::fm {
namespace {

namespace bj = boost::json;

bj::object reference(std::string_view kind, std::string_view name) {
    return {{"$ref", fmt::format("#/components/{}/{}", kind, name)}};
}

bj::array& array_in(bj::object& object, std::string_view key) {
    bj::value& member = object[key];
    if (!member.is_array()) member = bj::array();
    return member.get_array();
}

void add_response(bj::object& operation, std::string_view status, std::string_view name) {
    operation["responses"].as_object().emplace(status, reference("responses", name));
}

void complete(bj::object& operation, const Route& route) {
    add_response(operation, "400", "BadRequest");
    add_response(operation, "401", "Unauthenticated");
    if (route.privilege == Privilege::kPublic)
        operation["security"] = bj::array();
    else
        add_response(operation, "403", "Forbidden");
    add_response(operation, "421", "Misdirected");
    add_response(operation, "429", "RateLimited");
    add_response(operation, "408", "TooSlow");
    add_response(operation, "431", "HeadersTooLarge");
    add_response(operation, "500", "Fault");
    add_response(operation, "503", "Unavailable");
    add_response(operation, "default", "Refused");
    if (operation.contains("requestBody")) {
        add_response(operation, "413", "BodyTooLarge");
        add_response(operation, "415", "UnsupportedMediaType");
    }
    bj::array& parameters = array_in(operation, "parameters");
    if (route.method != "GET") {
        parameters.push_back(reference("parameters", "if-match"));
        parameters.push_back(reference("parameters", "if-none-match"));
        add_response(operation, "412", "PreconditionFailed");
    } else if (is_resource(route)) {
        parameters.push_back(reference("parameters", "if-none-match"));
        add_response(operation, "304", "NotModified");
        bj::object& good = operation["responses"].at("200").as_object();
        bj::value& headers = good["headers"];
        if (!headers.is_object()) headers = bj::object();
        headers.get_object().emplace("ETag", reference("headers", "ETag"));
    }
}

std::string completed() {
    bj::value document = bj::parse(openapi_source());
    for (const Route& route : routes()) {
        std::string method(route.method);
        std::ranges::transform(method, method.begin(),
                               [](char c) { return static_cast<char>(c - 'A' + 'a'); });
        bj::object* const path = document.at("paths").as_object()[route.path].if_object();
        bj::value* const operation = path == nullptr ? nullptr : path->if_contains(method);
        if (operation != nullptr) complete(operation->as_object(), route);
    }
    bj::object& schemas = document.at("components").at("schemas").as_object();
    bj::array& codes = array_in(schemas["Problem"].at("properties").at("code").as_object(), "enum");
    for (const ProblemRow& row : problem_table()) codes.emplace_back(row.code);
    return json::write(document);
}

}  // namespace

std::string_view openapi_document() {
    static const std::string document = completed();
    return document;
}

}  // namespace memtide::fm

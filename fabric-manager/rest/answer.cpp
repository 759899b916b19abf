#include "fabric-manager/rest/answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "fabric-manager/rest/text.h"

namespace memtide::fm {

unsigned status_of(const Problem& refusal) {
    static constexpr std::array<std::pair<std::string_view, unsigned>, 25> table{{
        {problem::kInvalidJson, 400},
        {problem::kInvalidRequest, 400},
        {problem::kNotFound, 404},
        {problem::kUnknownComposition, 404},
        {problem::kNoFittingDevice, 409},
        {problem::kExceedsFree, 409},
        {problem::kNoFreeVppb, 409},
        {problem::kReserved, 409},
        {problem::kLimitExceeded, 409},
        {problem::kNotOnline, 409},
        {problem::kCannotShrink, 409},
        {problem::kIdempotencyConflict, 409},
        {problem::kCompositionEnded, 409},
        {problem::kPreconditionFailed, 412},
        {problem::kUnsupportedMediaType, 415},
        {problem::kUnknownHost, 422},
        {problem::kBadPlacement, 422},
        {problem::kSizeZero, 422},
        {problem::kSizeNegative, 422},
        {problem::kSizeNotMultiple, 422},
        {problem::kExceedsLargestDevice, 422},
        {problem::kNotYourComposition, 422},
        {problem::kHostNotReachable, 503},
        {problem::kShuttingDown, 503},
        {problem::kStorageFull, 507},
    }};
    const auto* const found = std::ranges::find(table, std::string_view(refusal.code),
                                                &std::pair<std::string_view, unsigned>::first);
    return found == table.end() ? 500 : found->second;
}

http::Response answer(const Problem& refusal) {
    if (refusal.kind == ErrorCode::kCancelled)
        return http::problem(503, problem::kShuttingDown, "the manager is stopping; ask again in a moment");
    if (refusal.excluded.empty()) return http::problem(status_of(refusal), refusal.code, refusal.detail);
    boost::json::array excluded;
    for (const Exclusion& one : refusal.excluded)
        excluded.push_back(boost::json::object{
            {"device", one.device}, {"constraint", one.constraint}, {"detail", one.detail}});
    return http::problem(status_of(refusal), refusal.code, refusal.detail, {{"excluded", std::move(excluded)}});
}

http::Response answer(unsigned status, const boost::json::object& body) {
    return http::json_response(status, boost::json::serialize(body));
}

std::optional<Problem> check_media_type(const http::Request& request) {
    constexpr std::string_view kJson = "application/json";
    const std::string_view given = request.header("Content-Type").value_or("");
    std::string_view type = given.substr(0, given.find(';'));
    while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
    const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); };
    if (std::ranges::equal(kJson, type, same)) return std::nullopt;
    return Problem{std::string(problem::kUnsupportedMediaType),
                   given.empty() ? "the request has no Content-Type; send application/json"
                                 : fmt::format("the Content-Type is {}; send application/json", given)};
}

namespace {

std::unexpected<Problem> bad_query(std::string_view name, std::string_view value, std::string_view should) {
    return refuse(problem::kInvalidRequest,
                  fmt::format("the query parameter {} is \"{}\"; it must be {}", name, value, should));
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

Outcome<Paging> paging(const http::Request& request) {
    Paging result;
    if (const auto limit = request.query_value("limit")) {
        const auto value = parse_number(*limit);
        if (!value || *value == 0 || *value > 1000)
            return bad_query("limit", *limit, "a number from 1 to 1000");
        result.limit = *value;
    }
    result.page = request.query_value("page").value_or("");
    return result;
}

Outcome<Milliseconds> timeout(const http::Request& request, Milliseconds otherwise, Milliseconds most) {
    const auto given = request.query_value("timeout");
    if (!given) return otherwise;
    const auto value = parse_duration(*given);
    if (!value) return bad_query("timeout", *given, "a duration such as 500ms, 60s or 5min");
    return std::min(*value, most);
}

Outcome<std::optional<std::uint64_t>> number(const http::Request& request, std::string_view name) {
    const auto given = request.query_value(name);
    if (!given) return std::nullopt;
    const auto value = parse_number(*given);
    if (!value) return bad_query(name, *given, "a whole number");
    return value;
}

Outcome<bool> flag(const http::Request& request, std::string_view name) {
    const auto given = request.query_value(name);
    if (!given || *given == "false" || *given == "0") return false;
    if (given->empty() || *given == "true" || *given == "1") return true;
    return bad_query(name, *given, "true or false");
}

boost::json::object list_of(boost::json::array items, std::optional<std::string> next) {
    boost::json::object result;
    result["items"] = std::move(items);
    result["next"] = next ? boost::json::value(*next) : boost::json::value(nullptr);
    return result;
}

}  // namespace memtide::fm

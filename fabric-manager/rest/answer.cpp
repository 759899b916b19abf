#include "fabric-manager/rest/answer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "common/json/write.h"
#include "fabric-manager/rest/problem_table.h"
#include "fabric-manager/rest/text.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {

unsigned status_of(const Problem& refusal) {
    const auto table = problem_table();
    const auto found = std::ranges::find(table, std::string_view(refusal.code), &ProblemRow::code);
    if (found == table.end()) return 500;
    if (found->status != 0) return found->status;
    // Of those with several, what a handler refuses for: a body's host, a parameter.
    return found->code == problem::kUnknownHost ? 422 : 400;
}

http::Response answer(const Problem& refusal) {
    if (refusal.kind == ErrorCode::kCancelled)
        return http::problem(503, problem::kShuttingDown, "the manager is stopping; ask again in a moment");
    boost::json::object more;
    if (!refusal.excluded.empty()) more["excluded"] = to_json(refusal.excluded);
    http::Response response =
        http::problem(status_of(refusal), refusal.code, refusal.detail, std::move(more));
    // The manager goes on by itself as soon as it can write again.
    if (refusal.code.starts_with("storage-")) response.headers["Retry-After"] = "5";
    return response;
}

http::Response answer(unsigned status, const boost::json::object& body) {
    return http::json_response(status, json::write(body));
}

namespace {

bool same_word(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
    while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
    return text;
}

// Of the parameters behind a media type only a charset says something, and JSON has only one (RFC 8259, 8.1).
bool has_other_charset(std::string_view parameters) {
    while (!parameters.empty()) {
        const std::string_view one = trimmed(parameters.substr(0, parameters.find(';')));
        parameters.remove_prefix(std::min(parameters.size(), parameters.find(';')));
        if (!parameters.empty()) parameters.remove_prefix(1);
        const auto equals = one.find('=');
        if (equals == std::string_view::npos || !same_word(trimmed(one.substr(0, equals)), "charset"))
            continue;
        std::string_view charset = trimmed(one.substr(equals + 1));
        if (charset.size() >= 2 && charset.starts_with('"') && charset.ends_with('"'))
            charset = charset.substr(1, charset.size() - 2);
        if (!same_word(charset, "utf-8")) return true;
    }
    return false;
}

}  // namespace

std::optional<Problem> check_media_type(const http::Request& request) {
    const auto refused = [](std::string detail) {
        return Problem{std::string(problem::kUnsupportedMediaType), std::move(detail)};
    };
    const std::string_view coding = trimmed(request.header("Content-Encoding").value_or(""));
    if (!coding.empty() && !same_word(coding, "identity"))
        return refused(fmt::format("the Content-Encoding is {}; send the body as it is", coding));
    const std::string_view given = request.header("Content-Type").value_or("");
    if (given.empty()) return refused("the request has no Content-Type; send application/json");
    const std::string_view type = given.substr(0, given.find(';'));
    if (!same_word(trimmed(type), "application/json"))
        return refused(fmt::format("the Content-Type is {}; send application/json", given));
    if (has_other_charset(given.substr(type.size())))
        return refused(fmt::format("the Content-Type is {}; JSON is always in UTF-8", given));
    return std::nullopt;
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

Outcome<std::optional<bool>> choice(const http::Request& request, std::string_view name) {
    if (!request.query_value(name)) return std::nullopt;
    const auto value = flag(request, name);
    if (!value) return std::unexpected(value.error());
    return *value;
}

void ListAnswer::add(const boost::json::object& item) { json::append(next_item(), item); }

std::string& ListAnswer::next_item() {
    if (size_++ > 0) text_ += ',';
    return text_;
}

http::Response ListAnswer::finish(const std::optional<std::string>& next) {
    const boost::json::value token = next ? boost::json::value(*next) : boost::json::value(nullptr);
    text_ += "],\"next\":" + json::write(token) + "}";
    return http::json_response(200, std::move(text_));
}

}  // namespace memtide::fm

#include "fabric-manager/rest/preconditions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/conditional.h"
#include "fabric-manager/rest/context.h"

namespace memtide::fm {
namespace {

bool is_json(const http::Response& response) {
    const auto type = response.headers.find("Content-Type");
    return type != response.headers.end() && type->second == "application/json";
}

// What a GET of the path answers; nullopt when the path has none.
boost::asio::awaitable<std::optional<http::Response>> current(Context& context, const Route& changing,
                                                              const http::Request& request) {
    const auto all = routes();
    const auto got = std::ranges::find_if(
        all, [&](const Route& route) { return route.method == "GET" && route.path == changing.path; });
    if (got == all.end()) co_return std::nullopt;
    http::Request get;
    get.method = "GET";
    get.path = request.path;
    get.path_parameters = request.path_parameters;
    get.peer = request.peer;
    get.caller = request.caller;
    http::Response response = co_await got->handler(context, std::move(get));
    add_etag({}, response);
    co_return response;
}

Problem failed(std::string_view header, const std::optional<http::Response>& now) {
    std::string detail;
    if (!now)
        detail =
            fmt::format("what is changed here cannot be got, so it has no ETag: {} can only be *", header);
    else if (const auto tag = now->headers.find("ETag"); tag == now->headers.end())
        detail = fmt::format("{} does not hold: there is nothing of that name", header);
    else
        detail = fmt::format("{} does not hold: the ETag is now {}", header, tag->second);
    return {std::string(problem::kPreconditionFailed), std::move(detail)};
}

}  // namespace

bool is_resource(const Route& route) {
    return route.path.starts_with("/v1/") && route.operation != "streamEvents";
}

void add_etag(const http::Request& request, http::Response& response) {
    if (response.status != 200 || response.stream || !is_json(response)) return;
    const std::string& tag = response.headers.try_emplace("ETag", etag_of(response.body)).first->second;
    const auto wanted = if_none_match(request);
    if (!wanted) {
        response = answer(wanted.error());
        return;
    }
    if (!*wanted || !matches_weakly(**wanted, tag)) return;
    http::Response same;
    same.status = 304;
    same.headers["ETag"] = tag;
    response = std::move(same);
}

boost::asio::awaitable<std::optional<http::Response>> refuse_precondition(Context& context,
                                                                          const Route& route,
                                                                          const http::Request& request) {
    const auto wanted = if_match(request);
    if (!wanted) co_return answer(wanted.error());
    const auto unwanted = if_none_match(request);
    if (!unwanted) co_return answer(unwanted.error());
    const bool compare = *wanted && !route.conditional;
    if (!compare && !*unwanted) co_return std::nullopt;
    const std::optional<http::Response> now = co_await current(context, route, request);
    const auto tag = now ? now->headers.find("ETag") : http::Headers::const_iterator{};
    const bool tagged = now && tag != now->headers.end();
    if (compare) {
        const bool holds = tagged ? matches_strongly(**wanted, tag->second) : (*wanted)->any && !now;
        if (!holds) co_return answer(failed("If-Match", now));
    }
    if (*unwanted && tagged && matches_weakly(**unwanted, tag->second))
        co_return answer(failed("If-None-Match", now));
    co_return std::nullopt;
}

}  // namespace memtide::fm

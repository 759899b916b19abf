#include "common/http/router.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::http {
namespace {

std::vector<std::string> split(std::string_view path) {
    std::vector<std::string> segments;
    if (path.starts_with('/')) path.remove_prefix(1);
    for (;;) {
        const auto slash = path.find('/');
        segments.emplace_back(path.substr(0, slash));
        if (slash == std::string_view::npos) return segments;
        path.remove_prefix(slash + 1);
    }
}

bool is_parameter(std::string_view segment) { return segment.starts_with('{') && segment.ends_with('}'); }

boost::asio::awaitable<Response> ready(Response response) { co_return response; }

boost::asio::awaitable<Response> options_answer(std::string allow) {
    Response response;
    response.status = 204;
    response.headers["Allow"] = std::move(allow);
    co_return response;
}

// Paths in answers: enough to recognise one.
std::string_view shown(std::string_view path) { return path.substr(0, 200); }

boost::asio::awaitable<Response> refuse_path(const Request& request) {
    return ready(problem(404, "not-found", fmt::format("nothing is served at {}", shown(request.path))));
}

boost::asio::awaitable<Response> refuse_method(const Request& request, std::string allow) {
    Response refusal = problem(
        405, "method-not-allowed",
        fmt::format("{} does not serve {}; it serves {}", shown(request.path), request.method, allow));
    refusal.headers["Allow"] = std::move(allow);
    return ready(std::move(refusal));
}

}  // namespace

void Router::add(std::string method, std::string pattern, Handler handler) {
    std::vector<std::string> segments = split(pattern);
    routes_.push_back({std::move(method), std::move(pattern), std::move(segments), std::move(handler)});
}

bool Router::matches(const Route& route, const std::vector<std::string>& path) {
    return std::ranges::equal(route.segments, path, [](const std::string& segment, const std::string& given) {
        return is_parameter(segment) ? !given.empty() : segment == given;
    });
}

boost::asio::awaitable<Response> Router::dispatch(Request request) const {
    const std::vector<std::string> path = split(request.path);
    std::vector<std::string> allowed;
    for (const Route& route : routes_) {
        if (!matches(route, path)) continue;
        if (request.method == route.method || (request.method == "HEAD" && route.method == "GET")) {
            for (std::size_t i = 0; i < path.size(); ++i)
                if (const std::string_view name = route.segments[i]; is_parameter(name))
                    request.path_parameters.insert_or_assign(std::string(name.substr(1, name.size() - 2)),
                                                             path[i]);
            return route.handler(std::move(request));
        }
        allowed.push_back(route.method);
        if (route.method == "GET") allowed.emplace_back("HEAD");
    }
    if (request.path == "*" && request.method == "OPTIONS") return options_answer("GET, HEAD, OPTIONS");
    if (allowed.empty()) return refuse_path(request);
    allowed.emplace_back("OPTIONS");
    std::string allow = fmt::format("{}", fmt::join(allowed, ", "));
    if (request.method == "OPTIONS") return options_answer(std::move(allow));
    return refuse_method(request, std::move(allow));
}

std::vector<std::pair<std::string, std::string>> Router::routes() const {
    std::vector<std::pair<std::string, std::string>> result;
    result.reserve(routes_.size());
    for (const Route& route : routes_) result.emplace_back(route.method, route.pattern);
    return result;
}

}  // namespace memtide::http

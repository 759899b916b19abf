#include "fabric-manager/rest/api.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/nearest.h"
#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/routes.h"

namespace memtide::fm {
namespace {

constexpr const char* kRequests = "memtide_rest_requests_total";
constexpr const char* kDuration = "memtide_rest_request_duration_seconds";

using Names = std::set<std::string, std::less<>>;

Names parameters_of(const Route& route) {
    Names known;
    for (std::string_view rest = route.query; !rest.empty();) {
        const std::string_view name = rest.substr(0, rest.find(' '));
        known.emplace(name);
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    return known;
}

// A mistyped "?forec=true" must not be an ordinary release.
std::optional<Problem> unknown_parameter(const Route& route, const Names& known,
                                         const http::Request& request) {
    for (const auto& [name, value] : request.query) {
        if (known.contains(name)) continue;
        std::string detail =
            fmt::format("{} {} has no query parameter \"{}\"", route.method, route.path, name);
        if (const auto meant = nearest_name(name, known); !meant.empty())
            detail += fmt::format("; did you mean \"{}\"?", meant);
        else if (known.empty())
            detail += "; it takes none";
        else
            detail += fmt::format("; it takes {}", fmt::join(known, ", "));
        return Problem{std::string(problem::kInvalidRequest), std::move(detail)};
    }
    return std::nullopt;
}

// Counts what the handler answers, and for how long it worked where that means something.
http::Handler measured(Context& context, const Route& route) {
    metrics::Histogram* duration = nullptr;
    if (!route.quiet)
        duration = &context.metrics.histogram(kDuration, "Time from the whole request to its answer.",
                                              metrics::duration_bounds(),
                                              {{"operation", std::string(route.operation)}});
    // A pointer: the lambda's coroutine does not outlive the router, but copies of the lambda may be made.
    return [&context, &route, duration,
            known = parameters_of(route)](http::Request request) -> boost::asio::awaitable<http::Response> {
        const auto started = std::chrono::steady_clock::now();
        http::Response response;
        if (const std::optional<Problem> wrong = unknown_parameter(route, known, request))
            response = answer(*wrong);
        else
            response = co_await route.handler(context, std::move(request));
        if (duration != nullptr)
            duration->observe(
                std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
        context.metrics
            .counter(
                kRequests, "Answers by operation and status.",
                {{"operation", std::string(route.operation)}, {"status", std::to_string(response.status)}})
            .add();
        co_return response;
    };
}

}  // namespace

struct RestApi::Impl {
    Context context;
    http::Router router;
};

RestApi::RestApi(Manager& manager, metrics::Registry& metrics, RestOptions options)
    : impl_(new Impl{{manager, metrics, options, {}}, {}}) {
    for (const Route& route : routes())
        impl_->router.add(std::string(route.method), std::string(route.path),
                          measured(impl_->context, route));
}

RestApi::~RestApi() = default;

const http::Router& RestApi::router() const { return impl_->router; }

}  // namespace memtide::fm

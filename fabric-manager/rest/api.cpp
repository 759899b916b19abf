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

// A tenant learns nothing of compositions that are not its own: not even that they are there. Asked before
// anything else that could tell the two apart.
void hide_foreign(const Context& context, const http::Request& request, Gate::Passage& passage) {
    const auto id = request.path_parameters.find("id");
    if (id == request.path_parameters.end() || !caller_of(request).is_tenant()) return;
    const auto found = context.manager.get(CompositionId(id->second));
    if (found && caller_of(request).sees(*found)) return;
    Gate::refuse(passage, found ? "another tenant's composition" : "no such composition",
                 answer(Problem{std::string(problem::kUnknownComposition),
                                fmt::format("no composition {}", id->second)}));
}

// Whether the query alone asks for more than the route's privilege allows.
void check_force(const http::Request& request, Gate::Passage& passage) {
    const auto force = flag(request, "force");
    if (!force || !*force || caller_of(request).has(Privilege::kForceRelease)) return;
    Gate::refuse(passage, "may not force",
                 answer(Problem{std::string(problem::kForbidden),
                                "a forced release takes memory from under a running host, which others may "
                                "share; only an operator may do it"}));
}

// The route's handler behind the gate.
boost::asio::awaitable<http::Response> guarded(Context& context, const Route& route, const Names& known,
                                               http::Request request) {
    Gate* const gate = context.options.gate;
    if (gate == nullptr) request.caller = local_principal();
    Gate::Passage passage;
    if (gate != nullptr)
        passage = gate->enter(request, {route.operation, route.privilege, route.frequent, route.query});
    if (!passage.refusal) hide_foreign(context, request, passage);
    if (!passage.refusal) check_force(request, passage);
    http::Response response;
    if (passage.refusal) {
        response = *passage.refusal;
    } else if (const std::optional<Problem> wrong = unknown_parameter(route, known, request)) {
        response = answer(*wrong);
    } else {
        try {
            response = co_await route.handler(context, std::move(request));
        } catch (...) {
            response.status = 500;
            if (gate != nullptr) gate->leave(passage, response);
            throw;
        }
    }
    if (gate != nullptr) gate->leave(passage, response);
    co_return response;
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
        const http::Response response = co_await guarded(context, route, known, std::move(request));
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

#include "fabric-manager/rest/api.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/nearest.h"
#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/preconditions.h"
#include "fabric-manager/rest/routes.h"

namespace memtide::fm {
namespace {

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

// What is counted of one route.
class RouteMeter {
  public:
    RouteMeter(metrics::Registry& registry, const Route& route) {
        const metrics::Labels labels{{"method", std::string(route.method)},
                                     {"route", std::string(route.path)}};
        for (std::size_t i = 0; i < answers_.size(); ++i) {
            metrics::Labels with_code = labels;
            with_code["code"] = fmt::format("{}xx", i + 1);
            answers_[i] = &registry.counter("memtide_http_requests_total",
                                            "Answers by route and class of their status.", with_code);
        }
        if (!route.quiet)
            duration_ =
                &registry.histogram("memtide_http_request_duration_seconds",
                                    "Time from the whole request to its answer, where it does not wait "
                                    "for something to happen.",
                                    metrics::duration_bounds(), labels);
    }

    void note(unsigned status, std::chrono::steady_clock::duration took, bool waited) const {
        answers_[std::clamp(status / 100, 1U, 5U) - 1]->add();
        if (duration_ != nullptr && !waited) duration_->observe(std::chrono::duration<double>(took).count());
    }

  private:
    std::array<metrics::Counter*, 5> answers_{};  // by the first digit of the status
    metrics::Histogram* duration_ = nullptr;
};

// Everything that is the same for all routes, around the handler of one.
class Endpoint {
  public:
    Endpoint(Context& context, const Route& route)
        : context_(context), route_(route), known_(parameters_of(route)), meter_(context.metrics, route) {}

    Answer operator()(http::Request request) const {
        const auto started = std::chrono::steady_clock::now();
        const bool waits = request.query_value("wait").has_value();
        http::Response response = co_await behind_gate(std::move(request));
        meter_.note(response.status, std::chrono::steady_clock::now() - started, waits);
        co_return response;
    }

  private:
    Answer behind_gate(http::Request request) const {
        Gate* const gate = context_.options.gate;
        if (gate == nullptr) {
            request.caller = local_principal();
            co_return co_await answer_to(std::move(request));
        }
        const Door door{route_.operation, route_.privilege, route_.frequent, route_.query};
        Gate::Passage passage = gate->enter(request, door);
        if (!passage.refusal) hide_foreign(context_, request, passage);
        if (!passage.refusal) check_force(request, passage);
        gate->begin(passage);
        http::Response response;
        try {
            if (passage.refusal)
                response = *passage.refusal;
            else
                response = co_await answer_to(std::move(request));
        } catch (...) {
            response.status = 500;
            gate->leave(passage, response);
            throw;
        }
        gate->leave(passage, response);
        co_return response;
    }

    Answer answer_to(http::Request request) const {
        if (const auto wrong = wrong_parameter(request)) co_return answer(*wrong);
        if (route_.method != "GET") {
            auto refusal = co_await refuse_precondition(context_, route_, request);
            if (refusal) co_return *std::move(refusal);
            co_return co_await route_.handler(context_, std::move(request));
        }
        if (!is_resource(route_)) co_return co_await route_.handler(context_, std::move(request));
        http::Request conditions;  // outlives the request, which the handler gets
        if (const auto tags = request.header("If-None-Match"))
            conditions.headers["If-None-Match"] = std::string(*tags);
        http::Response response = co_await route_.handler(context_, std::move(request));
        add_etag(conditions, response);
        co_return response;
    }

    [[nodiscard]] std::optional<Problem> wrong_parameter(const http::Request& request) const {
        if (request.repeated_parameter)
            return Problem{std::string(problem::kInvalidRequest),
                           fmt::format("the query parameter {} is given twice", *request.repeated_parameter)};
        return unknown_parameter(route_, known_, request);
    }

    Context& context_;
    const Route& route_;
    const Names known_;
    const RouteMeter meter_;
};

}  // namespace

struct RestApi::Impl {
    Context context;
    http::Router router;
};

RestApi::RestApi(Manager& manager, metrics::Registry& metrics, RestOptions options)
    : impl_(new Impl{{manager, metrics, options, {}}, {}}) {
    metrics.before_render([weak = std::weak_ptr(impl_), &metrics] {
        const auto impl = weak.lock();
        if (!impl) return;
        metrics.gauge("memtide_fm_agents_connected", "Hosts whose agents have called lately.")
            .set(static_cast<double>(impl->context.contacts.connected_count()));
    });
    for (const Route& route : routes())
        impl_->router.add(std::string(route.method), std::string(route.path),
                          [endpoint = std::make_shared<const Endpoint>(impl_->context, route)](
                              http::Request request) { return (*endpoint)(std::move(request)); });
}

RestApi::~RestApi() = default;

const http::Router& RestApi::router() const { return impl_->router; }

}  // namespace memtide::fm

// Compositions: asking for memory, watching it come, giving it back.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/conditional.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/from_json.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

constexpr Milliseconds kWait{30'000};
constexpr Milliseconds kLongestWait{300'000};

http::Response answer_with(unsigned status, const Composition& composition) {
    http::Response response = answer(status, to_json(composition));
    response.headers["ETag"] = etag_of(composition);
    return response;
}

http::Response accepted(unsigned status, const Created& created) {
    http::Response response = answer_with(status, created.composition);
    response.headers["Location"] = "/v1/compositions/" + created.composition.id.value;
    if (created.replayed) response.headers["Idempotent-Replayed"] = "true";
    return response;
}

Outcome<std::optional<IdempotencyKey>> idempotency_key(const http::Request& request,
                                                       const CompositionRequest& wanted) {
    const auto key = request.header("Idempotency-Key");
    if (!key) return std::nullopt;
    const bool visible = std::ranges::all_of(*key, [](char c) { return c > ' ' && c < '\x7f'; });
    if (key->empty() || key->size() > 255 || !visible)
        return refuse(problem::kInvalidRequest,
                      "the Idempotency-Key must be 1 to 255 visible ASCII characters");
    // Each tenant has its own keys. No other key looks like that: they have no spaces.
    const Principal& caller = caller_of(request);
    std::string own = caller.is_tenant() ? caller.tenant.value_or("") + " " : std::string();
    return IdempotencyKey{std::move(own) + std::string(*key), fingerprint(wanted)};
}

Outcome<CompositionState> state_named(std::string_view text) {
    if (const auto state = parse_state(text)) return *state;
    return refuse(problem::kInvalidRequest,
                  fmt::format("\"{}\" is no state; there are Pending, Binding, Onlining, Online, Resizing, "
                              "Degraded, Draining, Unbinding, Erasing, Released and Failed",
                              text));
}

Problem no_page(std::string_view token) {
    return {std::string(problem::kInvalidRequest),
            fmt::format("\"{}\" is no page; use the \"next\" of the page before", token)};
}

Outcome<CompositionQuery> query_of(const http::Request& request) {
    const auto page = paging(request);
    if (!page) return std::unexpected(page.error());
    CompositionQuery query;
    query.limit = page->limit;
    if (!page->page.empty()) {
        const auto after = parse_number(page->page);
        if (!after) return std::unexpected(no_page(page->page));
        query.after = *after;
    }
    if (const auto host = request.query_value("host")) query.host = HostId(std::string(*host));
    if (const auto state = request.query_value("state")) {
        const auto named = state_named(*state);
        if (!named) return std::unexpected(named.error());
        query.state = *named;
    }
    if (const auto tenant = request.query_value("tenant")) query.tenant = std::string(*tenant);
    // Another tenant's list is as empty as one of a tenant that does not exist.
    if (const Principal& caller = caller_of(request); caller.is_tenant()) {
        const bool foreign = !caller.tenant || (query.tenant && query.tenant != caller.tenant);
        if (foreign) query.after = std::numeric_limits<std::uint64_t>::max();
        query.tenant = caller.tenant;
    }
    if (const auto at = request.query_value("switch")) query.switch_id = SwitchId(std::string(*at));
    if (const auto device = request.query_value("device")) query.device = DeviceId(std::string(*device));
    if (const auto label = request.query_value("label")) {
        const auto equals = label->find('=');
        std::optional<std::string> value;
        if (equals != std::string_view::npos) value = std::string(label->substr(equals + 1));
        query.label.emplace(std::string(label->substr(0, equals)), std::move(value));
    }
    return query;
}

// Where a composition would go: what was asked, and its parts without what only comes with life. What does
// not exist has no id, no state and no times.
boost::json::object plan_json(const PlannedComposition& planned) {
    boost::json::object result = to_json(planned.composition);
    for (const char* member : {"id", "state", "created", "updated", "expires"}) result[member] = nullptr;
    result["excluded"] = to_json(planned.excluded);
    return result;
}

// With If-Match, only the revisions that it lists may be changed.
Outcome<Precondition> precondition_of(const http::Request& request) {
    const auto tags = if_match(request);
    if (!tags) return std::unexpected(tags.error());
    if (!*tags) return Precondition{};
    return Precondition([list = **tags](std::uint64_t now) { return matches_revision(list, now); });
}

// What a tenant asks for is its own.
std::optional<Problem> charge_to(const Principal& caller, CompositionRequest& wanted) {
    if (!caller.is_tenant()) return std::nullopt;
    wanted.may_loosen = false;
    if (wanted.placement.use_reserve)
        return Problem{std::string(problem::kForbidden), "a tenant may not use the reserve of the pool"};
    if (!wanted.tenant) wanted.tenant = caller.tenant;
    if (wanted.tenant == caller.tenant) return std::nullopt;
    return Problem{std::string(problem::kForbidden),
                   fmt::format("a token of the tenant {} cannot compose for another tenant",
                               caller.tenant.value_or(""))};
}

// Until when a caller would rather not have the answer.
struct Wait {
    CompositionState state;
    Milliseconds patience;
};

Outcome<std::optional<Wait>> wait_of(const http::Request& request) {
    const auto patience = timeout(request, kWait, kLongestWait);
    if (!patience) return std::unexpected(patience.error());
    const auto wait = request.query_value("wait");
    if (!wait) return std::nullopt;
    const auto state = state_named(*wait);
    if (!state) return std::unexpected(state.error());
    return Wait{*state, *patience};
}

// What was accepted, as it is when it is there, has ended, or patience has.
boost::asio::awaitable<Composition> settled(Context& context, Composition accepted,
                                            std::optional<Wait> wait) {
    if (!wait) co_return accepted;
    auto found = co_await context.manager.wait(accepted.id, wait->state, wait->patience);
    co_return found ? *std::move(found) : std::move(accepted);
}

CompositionId id_of(const http::Request& request) { return CompositionId(request.path_parameters.at("id")); }

}  // namespace

Answer create_composition(Context& context, http::Request request) {
    if (const auto wrong = check_media_type(request)) co_return answer(*wrong);
    auto wanted = read_composition_request(request.body);
    if (!wanted) co_return answer(wanted.error());
    if (const auto refused = charge_to(caller_of(request), *wanted)) co_return answer(*refused);
    const auto dry_run = flag(request, "dryRun");
    if (!dry_run) co_return answer(dry_run.error());
    auto key = idempotency_key(request, *wanted);
    if (!key) co_return answer(key.error());
    const auto wait = wait_of(request);
    if (!wait) co_return answer(wait.error());
    if (*dry_run) {  // and nothing that the real one would refuse for its form
        std::optional<Outcome<Created>> before;
        if (*key) before = co_await context.manager.look_up(**key);
        if (before) co_return *before ? accepted(200, **before) : answer(before->error());
        const auto plan = context.manager.plan(*std::move(wanted));
        co_return plan ? answer(200, plan_json(*plan)) : answer(plan.error());
    }
    const auto created = co_await context.manager.create(*std::move(wanted), *std::move(key));
    if (!created) co_return answer(created.error());
    const Composition now = co_await settled(context, created->composition, *wait);
    const Created answered{now, created->replayed};
    co_return accepted(202, answered);
}

Answer list_compositions(Context& context, http::Request request) {
    const auto query = query_of(request);
    if (!query) co_return answer(query.error());
    const CompositionPage page = context.manager.list(*query);
    ListAnswer list;
    for (const Composition& composition : page.items) list.add(to_json(composition));
    std::optional<std::string> next;
    if (page.next) next = std::to_string(*page.next);
    co_return list.finish(next);
}

Answer get_composition(Context& context, http::Request request) {
    const auto wait = wait_of(request);
    if (!wait) co_return answer(wait.error());
    if (!*wait) {
        const auto found = context.manager.get(id_of(request));
        co_return found ? answer_with(200, *found) : answer(found.error());
    }
    const auto found = co_await context.manager.wait(id_of(request), (*wait)->state, (*wait)->patience);
    co_return found ? answer_with(200, *found) : answer(found.error());
}

Answer change_composition(Context& context, http::Request request) {
    if (const auto wrong = check_media_type(request)) co_return answer(*wrong);
    auto wanted = read_composition_change(request.body);
    if (!wanted) co_return answer(wanted.error());
    auto precondition = precondition_of(request);
    if (!precondition) co_return answer(precondition.error());
    const auto wait = wait_of(request);
    if (!wait) co_return answer(wait.error());
    const auto changed =
        co_await context.manager.change(id_of(request), *std::move(wanted), *std::move(precondition));
    if (!changed) co_return answer(changed.error());
    const Composition now = co_await settled(context, *changed, *wait);
    co_return answer_with(202, now);
}

Answer release_composition(Context& context, http::Request request) {
    const auto force = flag(request, "force");
    if (!force) co_return answer(force.error());
    auto precondition = precondition_of(request);
    if (!precondition) co_return answer(precondition.error());
    const auto wait = wait_of(request);
    if (!wait) co_return answer(wait.error());
    const auto released = co_await context.manager.release(id_of(request), *force, *std::move(precondition));
    if (!released) co_return answer(released.error());
    const Composition now = co_await settled(context, *released, *wait);
    co_return answer_with(202, now);
}

Answer get_history(Context& context, http::Request request) {
    const auto page = paging(request);
    if (!page) co_return answer(page.error());
    const auto after = page->page.empty() ? std::optional<std::uint64_t>(0) : parse_number(page->page);
    if (!after) co_return answer(no_page(page->page));
    const auto history = co_await context.manager.history(id_of(request), *after, page->limit);
    co_return history ? answer(200, to_json(*history)) : answer(history.error());
}

}  // namespace memtide::fm

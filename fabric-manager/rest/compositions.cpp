// Compositions: asking for memory, watching it come, giving it back.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/from_json.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

constexpr Milliseconds kWait{30'000};
constexpr Milliseconds kLongestWait{300'000};

std::string etag(const Composition& composition) { return fmt::format("\"{}\"", composition.revision); }

http::Response answer_with(unsigned status, const Composition& composition) {
    http::Response response = answer(status, to_json(composition));
    response.headers["ETag"] = etag(composition);
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
    return IdempotencyKey{std::string(*key), fingerprint(wanted)};
}

Outcome<CompositionState> state_named(std::string_view text) {
    if (const auto state = parse_state(text)) return *state;
    return refuse(problem::kInvalidRequest,
                  fmt::format("\"{}\" is no state; there are Pending, Binding, Onlining, Online, Resizing, "
                              "Degraded, Draining, Unbinding, Erasing, Released and Failed",
                              text));
}

Outcome<CompositionQuery> query_of(const http::Request& request) {
    const auto page = paging(request);
    if (!page) return std::unexpected(page.error());
    CompositionQuery query;
    query.limit = page->limit;
    if (!page->page.empty()) {
        const auto after = parse_number(page->page);
        if (!after)
            return refuse(problem::kInvalidRequest,
                          fmt::format("\"{}\" is no page; use the \"next\" of the page before", page->page));
        query.after = *after;
    }
    if (const auto host = request.query_value("host")) query.host = HostId(std::string(*host));
    if (const auto state = request.query_value("state")) {
        const auto named = state_named(*state);
        if (!named) return std::unexpected(named.error());
        query.state = *named;
    }
    return query;
}

// Where a composition would go: what was asked, and its parts without what only comes with life.
boost::json::object plan_json(const Composition& planned) {
    boost::json::object result = to_json(planned);
    result["id"] = nullptr;
    return result;
}

CompositionId id_of(const http::Request& request) { return CompositionId(request.path_parameters.at("id")); }

// If-Match (RFC 9110, 13.1.1): "*" or a list of entity tags, one of which must be the composition's.
Precondition precondition_of(const http::Request& request) {
    const auto wanted = request.header("If-Match");
    if (!wanted || *wanted == "*") return {};
    return [list = std::string(*wanted)](std::uint64_t revision) {
        const std::string now = fmt::format("\"{}\"", revision);
        for (std::string_view rest = list; !rest.empty();) {
            std::string_view tag = rest.substr(0, rest.find(','));
            rest.remove_prefix(std::min(rest.size(), tag.size() + 1));
            while (tag.starts_with(' ')) tag.remove_prefix(1);
            while (tag.ends_with(' ')) tag.remove_suffix(1);
            if (tag == now) return true;
        }
        return false;
    };
}

}  // namespace

Answer create_composition(Context& context, http::Request request) {
    if (const auto wrong = check_media_type(request)) co_return answer(*wrong);
    auto wanted = read_composition_request(request.body);
    if (!wanted) co_return answer(wanted.error());
    const auto dry_run = flag(request, "dryRun");
    if (!dry_run) co_return answer(dry_run.error());
    if (*dry_run) {
        const auto plan = context.manager.plan(*std::move(wanted));
        co_return plan ? answer(200, plan_json(*plan)) : answer(plan.error());
    }
    auto key = idempotency_key(request, *wanted);
    if (!key) co_return answer(key.error());
    const auto created = co_await context.manager.create(*std::move(wanted), *std::move(key));
    if (!created) co_return answer(created.error());
    http::Response response = answer_with(202, created->composition);
    response.headers["Location"] = "/v1/compositions/" + created->composition.id.value;
    if (created->replayed) response.headers["Idempotent-Replayed"] = "true";
    co_return response;
}

Answer list_compositions(Context& context, http::Request request) {
    const auto query = query_of(request);
    if (!query) co_return answer(query.error());
    const CompositionPage page = context.manager.list(*query);
    boost::json::array items;
    items.reserve(page.items.size());
    for (const Composition& composition : page.items) items.push_back(to_json(composition));
    std::optional<std::string> next;
    if (page.next) next = std::to_string(*page.next);
    co_return answer(200, list_of(std::move(items), std::move(next)));
}

Answer get_composition(Context& context, http::Request request) {
    const auto wait = request.query_value("wait");
    if (!wait) {
        const auto found = context.manager.get(id_of(request));
        co_return found ? answer_with(200, *found) : answer(found.error());
    }
    const auto state = state_named(*wait);
    if (!state) co_return answer(state.error());
    const auto patience = timeout(request, kWait, kLongestWait);
    if (!patience) co_return answer(patience.error());
    const auto found = co_await context.manager.wait(id_of(request), *state, *patience);
    co_return found ? answer_with(200, *found) : answer(found.error());
}

Answer change_composition(Context& context, http::Request request) {
    if (const auto wrong = check_media_type(request)) co_return answer(*wrong);
    auto wanted = read_composition_change(request.body);
    if (!wanted) co_return answer(wanted.error());
    Precondition precondition = precondition_of(request);
    const auto changed =
        co_await context.manager.change(id_of(request), *std::move(wanted), std::move(precondition));
    co_return changed ? answer_with(202, *changed) : answer(changed.error());
}

Answer release_composition(Context& context, http::Request request) {
    const auto force = flag(request, "force");
    if (!force) co_return answer(force.error());
    Precondition precondition = precondition_of(request);
    const auto released = co_await context.manager.release(id_of(request), *force, std::move(precondition));
    co_return released ? answer_with(202, *released) : answer(released.error());
}

}  // namespace memtide::fm

// The agent channel: a host's agent asks what it should have, and reports what is true.
#include <utility>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/from_json.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

constexpr Milliseconds kPoll{30'000};
constexpr Milliseconds kLongestPoll{120'000};

// In the path an unknown host is a resource that is not there; in a body (422) it is a wrong request.
http::Response answer_for_host(const Problem& refusal) {
    if (refusal.code == problem::kUnknownHost) return http::problem(404, refusal.code, refusal.detail);
    return answer(refusal);
}

}  // namespace

Answer get_desired(Context& context, http::Request request) {
    const HostId host(request.path_parameters.at("host"));
    const auto after = number(request, "after");
    if (!after) co_return answer(after.error());
    const auto patience = timeout(request, kPoll, kLongestPoll);
    if (!patience) co_return answer(patience.error());
    request = {};  // ten thousand agents wait here
    // Asked first without waiting, so that only hosts that exist are remembered as being there.
    auto desired = co_await context.manager.desired(host, std::nullopt, Milliseconds(0));
    if (!desired) co_return answer_for_host(desired.error());
    const AgentContacts::Poll poll(context.contacts, host);
    if (*after && desired->revision == **after)
        desired = co_await context.manager.desired(host, *after, *patience);
    if (!desired) co_return answer_for_host(desired.error());
    co_return answer(200, to_json(*desired));
}

Answer put_observed(Context& context, http::Request request) {
    if (const auto wrong = check_media_type(request)) co_return answer(*wrong);
    auto report = read_observed_report(request.body);
    if (!report) co_return answer(report.error());
    const HostId host(request.path_parameters.at("host"));
    const auto done = co_await context.manager.observed(host, *std::move(report));
    if (!done) co_return answer_for_host(done.error());
    context.contacts.touch(host);
    http::Response response;
    response.status = 204;
    co_return response;
}

}  // namespace memtide::fm

#include "cli/commands/compositions.h"

#include <chrono>
#include <thread>

#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "cli/render/compositions.h"
#include "cli/render/fields.h"
#include "common/daemon/exit_code.h"
#include "common/http/client.h"

namespace memtide::cli {
namespace {

namespace json = boost::json;

std::string target_of(const std::string& id) { return "/v1/compositions/" + http::percent_encode(id); }

bool has_ended(const json::value& composition) {
    const std::string state = text_of(composition, "state");
    return state == "Released" || state == "Failed";
}

// Follows a composition until it is in `state`, has ended, or the time is up, whichever is first. A manager
// that is away for a while (it may be restarting) does not end the waiting.
Result<json::value> follow(const ManagerClient& manager, json::value composition, const std::string& state,
                           const Waiting& waiting) {
    const auto deadline = std::chrono::steady_clock::now() + waiting.timeout;
    const std::string id = text_of(composition, "id");
    ProgressLine progress;
    while (text_of(composition, "state") != state && !has_ended(composition)) {
        progress.show(fmt::format("{} {}", id, render_progress(composition)));
        if (std::chrono::steady_clock::now() >= deadline) break;
        auto now = manager.get(fmt::format("{}?wait={}&timeout=1s", target_of(id), state));
        if (now)
            composition = *std::move(now);
        else if (now.error().code != ErrorCode::kUnavailable)
            return now;
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    return composition;
}

// Prints the composition and tells by the exit code whether it reached `state`.
int conclude(const Output& output, const json::value& composition, const std::string& state,
             const Waiting& waiting) {
    if (output.json())
        output.value(composition);
    else
        output.text(render_composition(composition));
    if (!waiting.wait || text_of(composition, "state") == state) return daemon::kExitOk;
    const std::string id = text_of(composition, "id");
    if (has_ended(composition))
        return output.failure({ErrorCode::kConflict,
                               fmt::format("{} ended as {}, not {}: {}", id, text_of(composition, "state"),
                                           state, text_of(member_of(composition, "reason"), "detail"))});
    return output.failure(
        {ErrorCode::kTimeout,
         fmt::format("{} is still {} after {} s; it goes on by itself: 'memtide show {}' tells how far it is",
                     id, render_progress(composition), waiting.timeout.count(), id)});
}

Result<json::object> request_body(const ComposeOptions& options) {
    json::object body{{"host", options.host}, {"size", options.size}};
    if (options.tenant) body["tenant"] = *options.tenant;
    if (options.ttl_seconds) body["ttl"] = *options.ttl_seconds;
    json::object labels;
    for (const std::string& label : options.labels) {
        const auto equals = label.find('=');
        if (equals == std::string::npos || equals == 0)
            return fail(ErrorCode::kInvalidArgument, fmt::format("--label {} must be KEY=VALUE", label));
        labels[label.substr(0, equals)] = label.substr(equals + 1);
    }
    if (!labels.empty()) body["labels"] = std::move(labels);
    return body;
}

}  // namespace

int compose(const ManagerClient& manager, const Output& output, const ComposeOptions& options) {
    const auto body = request_body(options);
    if (!body) {
        (void)output.failure(body.error());
        return daemon::kExitUsage;
    }
    auto composition = manager.post("/v1/compositions", *body, new_idempotency_key());
    if (composition && options.waiting.wait)
        composition = follow(manager, *std::move(composition), "Online", options.waiting);
    if (!composition) return output.failure(composition.error());
    return conclude(output, *composition, "Online", options.waiting);
}

int release(const ManagerClient& manager, const Output& output, const std::string& id, bool force,
            const Waiting& waiting) {
    auto composition = manager.remove(target_of(id) + (force ? "?force=true" : ""));
    if (composition && waiting.wait)
        composition = follow(manager, *std::move(composition), "Released", waiting);
    if (!composition) return output.failure(composition.error());
    return conclude(output, *composition, "Released", waiting);
}

int list_compositions(const ManagerClient& manager, const Output& output) {
    auto items = manager.list("/v1/compositions");
    if (!items) return output.failure(items.error());
    if (output.json())
        output.value(json::object{{"items", *std::move(items)}});
    else
        output.text(render_compositions(*items));
    return daemon::kExitOk;
}

int show_composition(const ManagerClient& manager, const Output& output, const std::string& id) {
    const auto composition = manager.get(target_of(id));
    if (!composition) return output.failure(composition.error());
    if (output.json())
        output.value(*composition);
    else
        output.text(render_composition(*composition));
    return daemon::kExitOk;
}

}  // namespace memtide::cli

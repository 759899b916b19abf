#include "cli/commands/compositions.h"

#include <utility>

#include <boost/json/object.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/render/compositions.h"
#include "cli/render/fields.h"
#include "common/daemon/exit_code.h"
#include "common/http/client.h"
#include "common/terminal/columns.h"

namespace memtide::cli {
namespace {

namespace json = boost::json;

// Where nobody tells how wide lines may be: a pipe, a file.
constexpr std::size_t kColumns = 120;

void print(Output& output, const json::value& composition) {
    if (output.json())
        output.value(composition);
    else
        output.text(render_composition(composition));
}

// Prints the composition and tells by the exit code whether it reached the goal.
int conclude(const ManagerClient& manager, Output& output, json::value composition, Goal goal,
             const Waiting& waiting) {
    if (!output.json()) composition = with_agent(manager, std::move(composition));
    print(output, composition);
    if (!waiting.wait || text_of(composition, "state") == goal.state) return daemon::kExitOk;
    const std::string id = text_of(composition, "id");
    if (has_ended(composition))
        return output.complaint(fmt::format("{} ended as {}, not {}: {}", id, text_of(composition, "state"),
                                            goal.state, text_of(member_of(composition, "reason"), "detail")));
    return output.complaint(
        fmt::format("{} is still {} after {} s; it goes on by itself: 'memtide show {}' tells how far it is",
                    id, render_progress(composition), waiting.timeout.count(), id));
}

json::object placement(const ComposeOptions& options) {
    // Ways are only there to be interleaved.
    json::object body{{"policy", options.ways > 1 ? "bandwidth" : options.policy}};
    if (options.max_devices) body["max_devices"] = *options.max_devices;
    if (options.max_percent_per_device) body["max_percent_per_device"] = *options.max_percent_per_device;
    if (options.max_percent_per_switch) body["max_percent_per_switch"] = *options.max_percent_per_switch;
    if (options.exclusive_devices) body["exclusive_devices"] = true;
    if (options.use_reserve) body["use_reserve"] = true;
    if (options.reprovide) body["reprovide"] = true;
    return body;
}

json::object request_body(const ComposeOptions& options) {
    json::object body{{"host", options.host}, {"size", options.size}};
    if (options.tenant) body["tenant"] = *options.tenant;
    if (options.ttl_seconds) body["ttl"] = *options.ttl_seconds;
    json::object labels;
    for (const std::string& label : options.labels) {
        const auto equals = label.find('=');
        labels[label.substr(0, equals)] = label.substr(equals + 1);
    }
    if (!labels.empty()) body["labels"] = std::move(labels);
    if (options.ways > 1) body["ways"] = options.ways;
    body["placement"] = placement(options);
    return body;
}

std::string list_target(const ListOptions& options) {
    std::string target = "/v1/compositions";
    const auto add = [&](std::string_view name, const std::optional<std::string>& value) {
        if (!value) return;
        target +=
            fmt::format("{}{}={}", target.contains('?') ? '&' : '?', name, http::percent_encode(*value));
    };
    add("host", options.host);
    add("state", options.state);
    add("tenant", options.tenant);
    add("label", options.label);
    add("device", options.device);
    return target;
}

}  // namespace

int compose(const ManagerClient& manager, Output& output, const ComposeOptions& options) {
    if (options.dry_run) {
        const auto plan = manager.post("/v1/compositions?dryRun=true", request_body(options), "", is_plan);
        if (!plan) return output.failure(plan.error());
        print(output, *plan);
        return daemon::kExitOk;
    }
    auto composition =
        manager.post("/v1/compositions", request_body(options), new_idempotency_key(), is_composition);
    if (composition && options.waiting.wait)
        composition = follow(manager, *std::move(composition), kOnline, options.waiting.timeout);
    if (!composition) return output.failure(composition.error());
    return conclude(manager, output, *std::move(composition), kOnline, options.waiting);
}

int release(const ManagerClient& manager, Output& output, const std::string& id, bool force,
            const Waiting& waiting) {
    const Goal goal = force ? kReleased : kReleasedUnforced;
    auto composition = manager.remove(composition_target(id) + (force ? "?force=true" : ""), is_composition);
    if (composition && waiting.wait)
        composition = follow(manager, *std::move(composition), goal, waiting.timeout);
    if (!composition) return output.failure(composition.error());
    return conclude(manager, output, *std::move(composition), goal, waiting);
}

int change_composition(const ManagerClient& manager, Output& output, const std::string& id,
                       const json::object& change, const Waiting& waiting) {
    auto composition = manager.patch(composition_target(id), change, is_composition);
    const std::string wanted = composition ? size_of(*composition, "size") : "";
    if (composition && waiting.wait)
        composition = follow(manager, *std::move(composition), kOnline, waiting.timeout);
    if (!composition) return output.failure(composition.error());
    if (size_of(*composition, "size") != wanted) {
        print(output, *composition);
        return output.complaint(
            fmt::format("{} went back to {}: 'memtide events' tells why", id, size_of(*composition, "size")));
    }
    return conclude(manager, output, *std::move(composition), kOnline, waiting);
}

int list_compositions(const ManagerClient& manager, Output& output, const ListOptions& options) {
    auto items = manager.list(list_target(options), is_composition);
    if (!items) return output.failure(items.error());
    json::array wanted;
    std::size_t left_out = 0;
    for (json::value& item : *items) {
        if (options.all || options.state || !has_ended(item))
            wanted.push_back(std::move(item));
        else
            ++left_out;
    }
    if (output.json()) {
        output.value(json::object{{"items", std::move(wanted)}});
        return daemon::kExitOk;
    }
    const auto columns = terminal_columns(STDOUT_FILENO);
    output.text(render_compositions(wanted, columns.value_or(kColumns)));
    // Only people wonder where the others are; scripts get what they asked for.
    if (left_out > 0 && columns) output.text(fmt::format("{} ended: --all shows them too\n", left_out));
    return daemon::kExitOk;
}

int show_composition(const ManagerClient& manager, Output& output, const std::string& id) {
    auto composition = manager.get(composition_target(id), is_composition);
    if (!composition) return output.failure(composition.error());
    print(output, output.json() ? *std::move(composition) : with_agent(manager, *std::move(composition)));
    return daemon::kExitOk;
}

}  // namespace memtide::cli

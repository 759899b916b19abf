// Desired and observed states of hosts.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/desired.h"

namespace memtide::fm {

namespace {

std::unexpected<Problem> refuse_unknown(const HostId& id) {
    return refuse(problem::kUnknownHost, fmt::format("no host named {}", id.value), ErrorCode::kNotFound);
}

Event host_event(std::string type, const HostId& host, std::string code, std::string detail) {
    Event event;
    event.type = std::move(type);
    event.host = host;
    event.code = std::move(code);
    event.detail = std::move(detail);
    return event;
}

}  // namespace

Async<Outcome<DesiredState>> Core::desired(HostId id, std::optional<std::uint64_t> after,
                                           Milliseconds timeout) {
    const std::shared_ptr<Core> self = shared_from_this();
    const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
    const Host* host = inventory_.host(id);
    if (host == nullptr) co_return refuse_unknown(id);
    AgentState& agent = *agents_.at(id);
    while (after && *after == host->revision) {
        if (stopping_)
            co_return refuse(problem::kInternalError, "the manager is stopping", ErrorCode::kCancelled);
        if (std::chrono::steady_clock::now() >= deadline) break;
        co_await agent.changed.wait_until(deadline);
        if ((co_await boost::asio::this_coro::cancellation_state).cancelled() !=
            boost::asio::cancellation_type::none)
            co_return refuse(problem::kInternalError, "cancelled", ErrorCode::kCancelled);
    }
    DesiredState state{host->revision, id, {}};
    const bool verifies = config_.verify_erased.pattern != ErasedPattern::kAny;
    for (const CompositionId& one : agent.active) {
        const Composition& c = find(one)->c;
        for (DesiredRegion& region : desired_regions(c)) {
            if (verifies && region.online && is_unused(c, region.id.number))
                region.verify = config_.verify_erased;
            state.regions.push_back(std::move(region));
        }
    }
    co_return state;
}

namespace {

// What the agent says about a region against what it is made of; empty when they agree. Until a carved LD was
// identified its serial number is not known, and no agent can know it either.
std::string contradiction(const Composition& c, const ObservedRegion& seen) {
    std::vector<SerialNumber> known;
    bool all_known = true;
    for (const Part& part : c.parts) {
        if (part.region != seen.id.number) continue;
        known.push_back(part.serial);
        all_known = all_known && part.serial.value != 0;
    }
    // A region that has ended is forgotten by a resize, perhaps before its agent has been told.
    if (known.empty() || !all_known) return {};
    std::vector<SerialNumber> told = seen.serials;
    told.insert(told.end(), seen.not_erased.begin(), seen.not_erased.end());
    for (const SerialNumber serial : told)
        if (std::ranges::find(known, serial) == known.end())
            return fmt::format("region {} of composition {} has serial number {}, not {}", seen.id.number,
                               c.id.value, format_serial(known.front()), format_serial(serial));
    return {};
}

}  // namespace

Outcome<> Core::check_report(const HostId& id, const ObservedReport& report) {
    std::set<RegionId> told;
    for (const ObservedRegion& one : report.regions) {
        if (!told.insert(one.id).second)
            return refuse(problem::kInvalidRequest,
                          fmt::format("region {} of composition {} is in the report twice", one.id.number,
                                      one.id.composition.value));
        const EntryPtr entry = find(one.id.composition);
        if (!entry || entry->c.host != id) {
            const std::string detail = fmt::format(
                "composition {} does not belong to host {}; nothing of the report "
                "was applied",
                one.id.composition.value, id.value);
            emit(host_event("host.refused", id, std::string(problem::kNotYourComposition), detail));
            return refuse(problem::kNotYourComposition, detail, ErrorCode::kPermission);
        }
        if (std::string wrong = contradiction(entry->c, one); !wrong.empty())
            return refuse(problem::kInvalidRequest, std::move(wrong));
    }
    return {};
}

Outcome<> Core::observed(const HostId& id, ObservedReport report) {
    Host* host = inventory_.host(id);
    if (host == nullptr) return refuse_unknown(id);
    if (report.boot_id.empty()) return refuse(problem::kInvalidRequest, "boot_id must not be empty");
    if (Outcome<> ok = check_report(id, report); !ok) return ok;

    AgentState& agent = *agents_.at(id);
    if (!agent.reported)
        emit(host_event("host.agent", id, "", "its agent, version " + report.agent_version + ", reports"));
    else if (agent.boot_id != report.boot_id)
        tell_change({.host = id}, host_event("host.rebooted", id, "", "its agent reports another boot id"));
    // One event for a kind of warning, however often its text changes: events are kept in a limited number.
    std::set<std::string_view> known;
    for (const Warning& warning : host->warnings) known.insert(warning.code);
    for (const Warning& warning : report.warnings)
        if (known.insert(warning.code).second)
            emit(host_event("host.warning", id, warning.code, warning.detail));
    // An agent that saw revisions of another life of the manager (its database was put back) has not seen
    // ours.
    if (report.revision_seen > agent.next_revision) report.revision_seen = 0;

    agent.reported = true;
    agent.boot_id = report.boot_id;
    agent.revision_seen = report.revision_seen;
    agent.regions.clear();
    for (ObservedRegion& one : report.regions)
        if (agent.active.contains(one.id.composition)) agent.regions[one.id] = std::move(one);
    host->last_report = now();
    host->agent_version = std::move(report.agent_version);
    host->boot_id = std::move(report.boot_id);
    host->revision_seen = report.revision_seen;
    host->memdevs = std::move(report.memdevs);
    host->windows = std::move(report.windows);
    host->warnings = std::move(report.warnings);
    kick(agent.active);
    return {};
}

}  // namespace memtide::fm

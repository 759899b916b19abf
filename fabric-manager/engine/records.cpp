// What switches tell of their own accord: event records, and notifications that there are some.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/switch_record.h"

namespace memtide::fm {

namespace {

// The limits keep a switch that lies from filling the event log or from being read without end.
constexpr int kMostAnswers = 16;       // of one log, at a time
constexpr std::size_t kMostTold = 16;  // at a time; of the others only the number is told
constexpr std::size_t kMostHandles = 255;
constexpr int kMostLostConnections = 2;

// The worst news first: it must not wait behind a full informational log.
constexpr std::array kOrder{fmapi::EventLog::kFatal, fmapi::EventLog::kFailure, fmapi::EventLog::kWarning,
                            fmapi::EventLog::kInformational};

Event record_event(const SwitchId& id, std::string code, std::string detail) {
    Event event;
    event.type = "switch.record";
    event.switch_id = id;
    event.code = std::move(code);
    event.detail = std::move(detail);
    return event;
}

}  // namespace

void Core::listen_to(const SwitchId& id) {
    switches_.at(id)->client->on_notification([weak = weak_from_this(), id] {
        const std::shared_ptr<Core> self = weak.lock();
        if (!self) return;
        SwitchState& state = *self->switches_.at(id);
        state.notified = true;
        state.read_now.notify_all();
    });
}

// Until the switch has to be looked at: at the latest after `pause`, at once when it is in doubt, and soon
// when it says that it has something to tell. One that says so all the time is listened to less and less.
Async<> Core::await_look(SwitchId id, Milliseconds pause) {
    SwitchState& state = *switches_.at(id);
    const SteadyTime due = std::chrono::steady_clock::now() + pause;
    while (!stopping_ && !std::exchange(state.look_wanted, false)) {
        const SteadyTime current = std::chrono::steady_clock::now();
        if (current >= due) break;
        SteadyTime until = due;
        if (state.notified) {
            if (current - state.heeded > config_.timing.retry_max * 2) state.heeded_in_a_row = 0;
            until = std::min(due, state.heeded + backoff(state.heeded_in_a_row));
            if (current >= until) {
                ++state.heeded_in_a_row;
                state.heeded = current;
                break;
            }
        }
        co_await state.read_now.wait_until(until);
    }
    state.notified = false;
}

// Whether the switch has event records, as far as it has been asked over this connection. A switch need not
// answer what it does not know, or may even hang up.
Async<bool> Core::has_records(SwitchId id) {
    SwitchState::Records& records = switches_.at(id)->records;
    const std::shared_ptr<FmApiClient> client = switches_.at(id)->client;
    if (records.lost_connections >= kMostLostConnections) co_return false;
    if (records.connection == client->connections()) co_return records.supported;
    records.connection = client->connections();
    records.supported = false;
    records.told_trouble = false;
    const Result<> asked = co_await client->request_notifications();
    note_records_answer(id, asked ? std::nullopt : std::optional(asked.error()));
    // It may have records without notifications; that shows when it is asked for some.
    const bool answers =
        asked ||
        (asked.error().code != ErrorCode::kUnavailable && asked.error().code != ErrorCode::kTimeout &&
         asked.error().code != ErrorCode::kProtocol && asked.error().code != ErrorCode::kCancelled);
    records.supported = answers && records.connection == client->connections();
    co_return records.supported;
}

// A switch that answers everything but this hung up for having been asked; one that is down did not.
void Core::note_records_answer(const SwitchId& id, const std::optional<Error>& error) {
    SwitchState::Records& records = switches_.at(id)->records;
    if (!error) records.lost_connections = 0;
    records.hung_up =
        error && (error->code == ErrorCode::kUnavailable || error->code == ErrorCode::kProtocol);
}

// Reads and clears the event records of the switch, and tells what they say. True when there was something
// that was not known.
Async<bool> Core::collect_records(SwitchId id) {
    const bool any = co_await has_records(id);
    if (!any) co_return false;
    Findings findings;
    for (const fmapi::EventLog log : kOrder) {
        const bool goes_on = co_await collect_log(id, log, findings);
        if (!goes_on || stopping_) break;
    }
    if (findings.untold > 0)
        emit(record_event(id, "more-records",
                          fmt::format("{} more records, which are not told one by one", findings.untold)));
    co_return findings.found;
}

// One log. False when the switch is not to be asked on.
Async<bool> Core::collect_log(SwitchId id, fmapi::EventLog log, Findings& findings) {
    SwitchState& state = *switches_.at(id);
    std::optional<fmapi::EventRecord> first_before;
    for (int answers = 0; answers < kMostAnswers && !stopping_; ++answers) {
        const Result<fmapi::GetEventRecordsResponse> answer = co_await state.client->event_records(log);
        note_records_answer(id, answer ? std::nullopt : std::optional(answer.error()));
        if (!answer) {
            // Busy is for now; everything else means that it has none, as far as this connection goes.
            if (answer.error().code != ErrorCode::kConflict) state.records.supported = false;
            co_return false;
        }
        // Asked until there are none: what it says of more may be a lie, and so may its having cleared them.
        if (answer->records.empty()) co_return true;
        if (first_before && *first_before == answer->records.front()) {
            tell_records_trouble(id, "it answers records again that were cleared");
            co_return false;
        }
        first_before = answer->records.front();
        if ((answer->flags & fmapi::kEventsOverflow) != 0)
            emit(record_event(id, "records-lost",
                              fmt::format("its log was full: {} records were lost", answer->overflow_count)));
        std::vector<std::uint16_t> handles;
        for (const fmapi::EventRecord& record : answer->records) {
            if (handles.size() == kMostHandles) break;
            handles.push_back(record.handle);
            tell_record(id, record, log, findings);
        }
        const Result<> cleared = co_await state.client->clear_event_records(log, std::move(handles));
        if (!cleared) {
            tell_records_trouble(id, "its records cannot be cleared: " + cleared.error().message);
            co_return false;
        }
    }
    tell_records_trouble(id, "its records have no end");
    co_return false;
}

void Core::tell_record(const SwitchId& id, const fmapi::EventRecord& record, fmapi::EventLog log,
                       Findings& findings) {
    if (is_known(record, log, *inventory_.find_switch(id))) return;
    findings.found = true;
    if (++findings.told > kMostTold) {
        ++findings.untold;
        return;
    }
    SwitchRecord described = describe_record(record, log);
    const bool change = described.code == "link-change" || described.code == "slot-change";
    Event event = record_event(id, std::move(described.code), std::move(described.detail));
    if (described.port)
        if (const Device* device = last_device_at(id, *described.port)) event.device = device->id;
    // A port that it does not have cannot flap: the names would have no end.
    const Switch& known = *inventory_.find_switch(id);
    if (change && std::ranges::find(known.ports, *described.port, &Port::id) != known.ports.end())
        return tell_change({.switch_id = id, .port = described.port}, std::move(event));
    emit(std::move(event));
}

// Its records are of no use over this connection; polling still is.
void Core::tell_records_trouble(const SwitchId& id, std::string what) {
    SwitchState& state = *switches_.at(id);
    state.records.supported = false;
    if (std::exchange(state.records.told_trouble, true)) return;
    emit(record_event(id, "records-useless",
                      what + "; it is not asked for event records again over this connection"));
}

}  // namespace memtide::fm

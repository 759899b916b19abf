#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cxl-emul/switch/command_table.h"
#include "cxl-emul/switch/event_log.h"

// Reading and clearing the event records of any component whose context has events() and has_event_log(), and
// writing them. Only for the files that implement commands.
namespace memtide::emul {

template <typename Context>
Outcome get_event_records(const Context& context, const fmapi::GetEventRecordsRequest& request) {
    // What fits into an answer of any component, as QEMU's devices have it.
    constexpr std::size_t kMostRecords = 20;
    if (!context.has_event_log(request.log)) return refuse(fmapi::ReturnCode::kInvalidInput);
    const std::size_t room = (std::size_t{1} << context.component().response_limit) - fmapi::kHeaderSize -
                             fmapi::GetEventRecordsResponse::kWireSize;
    const std::size_t most = std::clamp<std::size_t>(room / fmapi::EventRecord::kWireSize, 1, kMostRecords);
    return done(context.events().read(request.log, most));
}

template <typename Context>
Outcome clear_event_records(const Context& context, const fmapi::ClearEventRecordsRequest& request) {
    if (!context.has_event_log(request.log)) return refuse(fmapi::ReturnCode::kInvalidInput);
    const bool all = (request.flags & fmapi::kClearAllEvents) != 0;
    if (all == !request.handles.empty()) return refuse(fmapi::ReturnCode::kInvalidInput);
    if (!all) return refuse(context.events().clear(request.log, request.handles));
    context.events().clear_all(request.log);
    return done();
}

template <fmapi::Described Data>
void append_record(EventLogs& logs, fmapi::EventLog log, const fmapi::Uuid& format, const Data& data) {
    fmapi::EventRecord record;
    record.format = format;
    record.timestamp = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                      std::chrono::system_clock::now().time_since_epoch())
                                                      .count());
    const std::vector<std::byte> bytes = fmapi::encode(data);
    std::ranges::transform(bytes, record.data.begin(), [](std::byte b) { return std::uint8_t(b); });
    logs.add(log, record);
}

}  // namespace memtide::emul

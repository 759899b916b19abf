#include "cxl-emul/switch/event_log.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace memtide::emul {

void EventLogs::add(fmapi::EventLog log, fmapi::EventRecord record) {
    Log& own = log_of(log);
    if (own.records.size() >= capacity(log)) {
        if (own.lost == 0) own.first_lost = record.timestamp;
        own.last_lost = record.timestamp;
        if (own.lost < std::numeric_limits<std::uint16_t>::max()) ++own.lost;
        return;
    }
    if (own.records.empty()) fresh_ = static_cast<std::uint16_t>(fresh_ | fmapi::bit_of(log));
    if (++own.last_handle == 0) own.last_handle = 1;  // 0 is no handle
    record.handle = own.last_handle;
    // Dynamic capacity has no severity of its own: informational.
    const auto severity = log == fmapi::EventLog::kDynamicCapacity ? fmapi::EventLog::kInformational : log;
    record.flags = (record.flags & ~std::uint32_t{3}) | static_cast<std::uint32_t>(severity);
    own.records.push_back(std::move(record));
}

fmapi::GetEventRecordsResponse EventLogs::read(fmapi::EventLog log, std::size_t most) const {
    const Log& own = log_of(log);
    const std::size_t count = std::min(most, own.records.size());
    fmapi::GetEventRecordsResponse answer;
    answer.records.assign(own.records.begin(), own.records.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < own.records.size()) answer.flags = fmapi::kMoreEvents;
    if (own.lost != 0) answer.flags = static_cast<std::uint8_t>(answer.flags | fmapi::kEventsOverflow);
    answer.overflow_count = own.lost;
    answer.first_overflow = own.first_lost;
    answer.last_overflow = own.last_lost;
    return answer;
}

fmapi::ReturnCode EventLogs::clear(fmapi::EventLog log, std::span<const std::uint16_t> handles) {
    Log& own = log_of(log);
    if (handles.size() > own.records.size()) return fmapi::ReturnCode::kInvalidHandle;
    for (std::size_t i = 0; i < handles.size(); ++i)
        if (own.records[i].handle != handles[i]) return fmapi::ReturnCode::kInvalidHandle;
    own.records.erase(own.records.begin(), own.records.begin() + static_cast<std::ptrdiff_t>(handles.size()));
    if (!handles.empty()) own.lost = 0;
    return fmapi::ReturnCode::kSuccess;
}

void EventLogs::clear_all(fmapi::EventLog log) {
    log_of(log).records.clear();
    log_of(log).lost = 0;
}

std::uint16_t EventLogs::take_fresh() {
    return static_cast<std::uint16_t>(std::exchange(fresh_, std::uint16_t{0}) & notified_);
}

}  // namespace memtide::emul

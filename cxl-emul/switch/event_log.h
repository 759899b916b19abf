#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "common/fmapi/commands/events.h"
#include "common/fmapi/return_code.h"

namespace memtide::emul {

// The event records of a component, in four logs, or five where there is dynamic capacity (CXL 3.1, 8.2.9.2).
// Plain data; not thread safe.
class EventLogs {
  public:
    static constexpr std::size_t kRecordsPerLog = 64;
    // As many as there can be extents, so that any offer fits into an empty log.
    static constexpr std::size_t kDynamicCapacityRecords = 1024;
    static constexpr std::size_t capacity(fmapi::EventLog log) {
        return log == fmapi::EventLog::kDynamicCapacity ? kDynamicCapacityRecords : kRecordsPerLog;
    }

    // Appends the record to the log, with a handle of its own, and notes that there is something to notify of
    // when it is the log's first. A full log keeps what it has and counts what it loses.
    void add(fmapi::EventLog log, fmapi::EventRecord record);

    // Records that still go into the log.
    [[nodiscard]] std::size_t room(fmapi::EventLog log) const {
        return capacity(log) - log_of(log).records.size();
    }
    // The oldest records of the log, at most `most`.
    [[nodiscard]] fmapi::GetEventRecordsResponse read(fmapi::EventLog log, std::size_t most) const;

    // Removes the records with these handles, which must be the log's oldest in their order: Invalid Handle
    // otherwise, and then all are still there.
    fmapi::ReturnCode clear(fmapi::EventLog log, std::span<const std::uint16_t> handles);
    void clear_all(fmapi::EventLog log);

    // Which logs are notified of: bits of fmapi::bit_of().
    [[nodiscard]] std::uint16_t notified() const { return notified_; }
    void set_notified(std::uint16_t logs) { notified_ = logs; }
    // The logs among them that got their first record since this was called last.
    std::uint16_t take_fresh();

  private:
    struct Log {
        std::deque<fmapi::EventRecord> records;
        std::uint16_t last_handle = 0;
        std::uint16_t lost = 0;
        std::uint64_t first_lost = 0;
        std::uint64_t last_lost = 0;
    };
    [[nodiscard]] Log& log_of(fmapi::EventLog log) { return logs_.at(static_cast<std::size_t>(log)); }
    [[nodiscard]] const Log& log_of(fmapi::EventLog log) const {
        return logs_.at(static_cast<std::size_t>(log));
    }

    std::array<Log, fmapi::kEventLogs.size() + 1> logs_;
    std::uint16_t notified_ = 0;
    std::uint16_t fresh_ = 0;
};

}  // namespace memtide::emul

// The event records of the fake switch.
#include "tests/fabric-manager/engine/fake_switch.h"

namespace memtide::fm {

namespace {
std::unexpected<Error> unsupported() { return fail(ErrorCode::kInvalidArgument, "Unsupported (0003h)"); }
}  // namespace

void FakeSwitch::tell(std::uint8_t id, fmapi::PhysicalSwitchEvent event) {
    fmapi::PhysicalSwitchRecord data;
    data.port = id;
    data.event = event;
    fmapi::EventRecord record;
    record.format = fmapi::kPhysicalSwitchRecord;
    record.handle = ++last_handle_;
    const std::vector<std::byte> bytes = fmapi::encode(data);
    for (std::size_t i = 0; i < bytes.size(); ++i) record.data[i] = std::to_integer<std::uint8_t>(bytes[i]);
    (*records)[fmapi::EventLog::kWarning].push_back(record);
    if (notify) notify();
}

Call<fmapi::GetEventRecordsResponse> FakeSwitch::event_records(fmapi::EventLog log) {
    const Result<> here = co_await arrive("event_records");
    if (!here) co_return std::unexpected(here.error());
    ++asked_for_records;
    if (!records) co_return unsupported();
    fmapi::GetEventRecordsResponse answer;
    answer.records = (*records)[log];
    co_return answer;
}

Call<void> FakeSwitch::clear_event_records(fmapi::EventLog log, std::vector<std::uint16_t> handles) {
    const Result<> here = co_await arrive("clear_event_records");
    if (!here) co_return std::unexpected(here.error());
    if (!records) co_return unsupported();
    std::vector<fmapi::EventRecord>& own = (*records)[log];
    for (const std::uint16_t handle : handles) {
        if (own.empty() || own.front().handle != handle)
            co_return fail(ErrorCode::kInvalidArgument, "Invalid Handle (000eh)");
        if (clears_records) own.erase(own.begin());
    }
    co_return Result<>();
}

Call<void> FakeSwitch::request_notifications() {
    const Result<> here = co_await arrive("request_notifications");
    if (!here) co_return std::unexpected(here.error());
    if (!records) co_return unsupported();
    co_return Result<>();
}

}  // namespace memtide::fm

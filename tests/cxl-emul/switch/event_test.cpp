#include <gtest/gtest.h>

#include "cxl-emul/switch/event_log.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::EventLog;
using fmapi::ReturnCode;

class SwitchEvents : public OverBothTransports {
  protected:
    fmapi::GetEventRecordsResponse records(EventLog log) {
        return manager_.get<fmapi::GetEventRecords>({log});
    }
    ReturnCode clear(EventLog log, std::vector<std::uint16_t> handles) {
        return manager_.call<fmapi::ClearEventRecords>({log, 0, std::move(handles)}).return_code;
    }
    static fmapi::PhysicalSwitchRecord port_of(const fmapi::EventRecord& record) {
        EXPECT_EQ(record.format, fmapi::kPhysicalSwitchRecord);
        return fmapi::decode<fmapi::PhysicalSwitchRecord>(std::as_bytes(std::span(record.data))).value();
    }
    Switch& sw() { return switch_.thread().get(); }
};
INSTANTIATE_TEST_SUITE_P(, SwitchEvents, both_transports(), transport_name);

TEST_P(SwitchEvents, NothingIsRecordedAtFirst) {
    for (const EventLog log : fmapi::kEventLogs) EXPECT_TRUE(records(log).records.empty());
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_TRUE(records(EventLog::kInformational).records.empty());  // whoever binds knows
}

TEST_P(SwitchEvents, InterruptsAreOffUntilTheyAreAskedForAndEachLogHasItsMessage) {
    EXPECT_EQ(manager_.get<fmapi::GetEventInterruptPolicy>(), fmapi::EventInterruptPolicy());
    EXPECT_EQ(manager_.call<fmapi::SetEventInterruptPolicy>({1, 1, 2, 1, 1}).return_code,
              ReturnCode::kSuccess);
    EXPECT_EQ(manager_.get<fmapi::GetEventInterruptPolicy>(),
              (fmapi::EventInterruptPolicy{0x01, 0x11, 0x02, 0x31, 0}));
}

TEST_P(SwitchEvents, InterruptPolicyWithoutDynamicCapacityIsThatOfAnOlderManager) {
    EXPECT_EQ(
        manager_.call(fmapi::Opcode::kSetEventInterruptPolicy, fmapi::Payload(4, std::byte{1})).return_code,
        ReturnCode::kSuccess);
    EXPECT_EQ(manager_.get<fmapi::GetEventInterruptPolicy>().fatal, 0x31);
    for (const std::size_t length : {3, 6})
        EXPECT_EQ(manager_.call(fmapi::Opcode::kSetEventInterruptPolicy, fmapi::Payload(length)).return_code,
                  ReturnCode::kInvalidPayloadLength);
}

TEST_P(SwitchEvents, InterruptModeThatDoesNotExistChangesNothing) {
    EXPECT_EQ(manager_.call<fmapi::SetEventInterruptPolicy>({1, 1, 3, 1, 0}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.get<fmapi::GetEventInterruptPolicy>(), fmapi::EventInterruptPolicy());
}

TEST_P(SwitchEvents, RemovalOfADeviceIsAWarningAndItsReturnIsNot) {
    sw().set_device_plugged(DeviceId("mld0"), false);
    const auto lost = records(EventLog::kWarning);
    ASSERT_EQ(lost.records.size(), 1U);
    const auto gone = port_of(lost.records[0]);
    EXPECT_EQ(gone.port, kMldPort);
    EXPECT_EQ(gone.event, fmapi::PhysicalSwitchEvent::kSlotStatusUpdated);
    EXPECT_EQ(gone.slot_status, fmapi::kSlotPresenceDetectChanged);
    EXPECT_EQ(gone.negotiated_link_width, 0);
    EXPECT_EQ(manager_.get<fmapi::GetPhysicalPortState>({{kMldPort}}).ports.at(0).device_type,
              fmapi::ConnectedDeviceType::kNone);
    sw().set_device_plugged(DeviceId("mld0"), true);
    const auto came = records(EventLog::kInformational);
    ASSERT_EQ(came.records.size(), 1U);
    EXPECT_NE(port_of(came.records[0]).slot_status & fmapi::kSlotPresent, 0);
}

TEST_P(SwitchEvents, RemovalUnderAHostIsAFailure) {
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    sw().set_device_plugged(DeviceId("mld0"), false);
    EXPECT_EQ(records(EventLog::kFailure).records.size(), 1U);
}

TEST_P(SwitchEvents, LinksOfDevicesAndHostsAreRecordedWhenTheyChange) {
    sw().set_device_link(DeviceId("sld0"), false);
    sw().set_device_link(DeviceId("sld0"), false);
    sw().set_host_link(HostId("host1"), false);
    const auto answer = records(EventLog::kWarning);
    ASSERT_EQ(answer.records.size(), 2U);
    EXPECT_EQ(port_of(answer.records[0]).port, kSldPort);
    EXPECT_EQ(port_of(answer.records[0]).event, fmapi::PhysicalSwitchEvent::kLinkStateChange);
    EXPECT_EQ(port_of(answer.records[1]).port, 1);
}

TEST_P(SwitchEvents, ErrorOfAnLdNamesItsPort) {
    sw().report_ld_error(DeviceId("mld0"), fmapi::MldPortEvent::kNonFatal);
    const auto answer = records(EventLog::kFailure);
    ASSERT_EQ(answer.records.size(), 1U);
    EXPECT_EQ(answer.records[0].format, fmapi::kMldPortRecord);
    EXPECT_EQ(answer.records[0].data[1], kMldPort);
}

TEST_P(SwitchEvents, RecordsStayUntilTheyAreClearedTheOldestFirst) {
    for (int i = 0; i < 2; ++i) {
        sw().set_device_link(DeviceId("mld0"), false);
        sw().set_device_link(DeviceId("mld0"), true);
    }
    const auto first = records(EventLog::kWarning).records;
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(records(EventLog::kWarning).records, first);
    EXPECT_EQ(clear(EventLog::kWarning, {first[1].handle}), ReturnCode::kInvalidHandle);
    EXPECT_EQ(clear(EventLog::kWarning, {first[0].handle}), ReturnCode::kSuccess);
    EXPECT_EQ(records(EventLog::kWarning).records, std::vector{first[1]});
    EXPECT_EQ(
        manager_.call<fmapi::ClearEventRecords>({EventLog::kWarning, fmapi::kClearAllEvents, {}}).return_code,
        ReturnCode::kSuccess);
    EXPECT_TRUE(records(EventLog::kWarning).records.empty());
}

TEST_P(SwitchEvents, WhatMakesNoSenseIsRefused) {
    EXPECT_EQ(manager_.call<fmapi::GetEventRecords>({EventLog{9}}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(clear(EventLog{9}, {1}), ReturnCode::kInvalidInput);
    EXPECT_EQ(clear(EventLog::kFatal, {}), ReturnCode::kInvalidInput);
    EXPECT_EQ(clear(EventLog::kFatal, {1}), ReturnCode::kInvalidHandle);
    EXPECT_EQ(manager_.call(fmapi::Opcode::kClearEventRecords, fmapi::Payload(7)).return_code,
              ReturnCode::kInvalidPayloadLength);
}

TEST_P(SwitchEvents, WhoeverAskedForItIsNotifiedOfTheFirstRecord) {
    Manager other(address());
    EXPECT_EQ(manager_.get<fmapi::SetMctpEventInterruptPolicy>({0xffff}).settings, 0x000f);
    EXPECT_EQ(manager_.get<fmapi::GetMctpEventInterruptPolicy>().settings, 0x000f);
    sw().set_device_link(DeviceId("mld0"), false);
    const fmapi::MctpMessage told = manager_.receive();
    EXPECT_FALSE(told.message.is_response);
    EXPECT_EQ(told.message.opcode, fmapi::Opcode::kEventNotification);
    EXPECT_EQ(fmapi::decode<fmapi::EventNotificationRequest>(told.message.payload)->events,
              fmapi::bit_of(EventLog::kWarning));
    sw().set_device_link(DeviceId("mld0"), true);
    EXPECT_EQ(manager_.receive().message.opcode, fmapi::Opcode::kEventNotification);  // of another log
    sw().set_device_link(DeviceId("mld0"), false);  // not the first any more: the next is an answer
    EXPECT_EQ(records(EventLog::kWarning).records.size(), 2U);
    EXPECT_EQ(other.get<fmapi::Identify>().serial, 0x5357U);  // the other one heard nothing
}

TEST(EventLogs, FullLogCountsWhatItLoses) {
    EventLogs logs;
    for (std::size_t i = 0; i < EventLogs::kRecordsPerLog + 3; ++i) {
        fmapi::EventRecord record;
        record.timestamp = i;
        logs.add(EventLog::kFatal, record);
    }
    const auto answer = logs.read(EventLog::kFatal, 10);
    EXPECT_EQ(answer.records.size(), 10U);
    EXPECT_EQ(answer.flags, fmapi::kMoreEvents | fmapi::kEventsOverflow);
    EXPECT_EQ(answer.overflow_count, 3);
    EXPECT_EQ(answer.first_overflow, EventLogs::kRecordsPerLog);
    EXPECT_EQ(answer.last_overflow, EventLogs::kRecordsPerLog + 2);
    for (const fmapi::EventRecord& record : answer.records) EXPECT_EQ(record.flags & 3, 3U);
}

TEST(EventLogs, HandlesAreNeverZero) {
    EventLogs logs;
    for (int i = 0; i < 70'000; ++i) {
        logs.add(EventLog::kWarning, {});
        const std::uint16_t handle = logs.read(EventLog::kWarning, 1).records.at(0).handle;
        ASSERT_NE(handle, 0);
        ASSERT_EQ(logs.clear(EventLog::kWarning, std::vector{handle}), ReturnCode::kSuccess);
    }
}

}  // namespace
}  // namespace memtide::emul::test

// What the manager makes of a switch's event records and notifications.
#include <gtest/gtest.h>

#include "fabric-manager/engine/switch_record.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
using fmapi::EventLog;
using fmapi::PhysicalSwitchEvent;

// A manager that would not look by itself for an hour.
void slow(Rig& rig) {
    rig.config.timing.switch_poll = std::chrono::hours(1);
    rig.config.timing.gone_after = Milliseconds(10);
    rig.fabric->records.emplace();
}

TEST(Records, NotificationHasTheSwitchReadAtOnce) {
    Rig rig;
    slow(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.settle();
    rig.fabric->remove_device(2);
    rig.fabric->tell(2, PhysicalSwitchEvent::kSlotStatusUpdated);
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("device.removed"); }));
    EXPECT_TRUE(rig.has_event("switch.record", "the slot of port 2 is empty"));
    EXPECT_TRUE((*rig.fabric->records)[EventLog::kWarning].empty());
}

TEST(Records, NotificationsThatFollowEachOtherAreHeededToo) {
    Rig rig;
    slow(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    for (int i = 1; i <= 5; ++i) {
        rig.fabric->tell(2, PhysicalSwitchEvent::kLinkStateChange);
        ASSERT_TRUE(rig.run_until([&] { return rig.events_of("switch.record") == i; }));
    }
}

TEST(Records, AreReadAtEachPollWithoutNotifications) {
    Rig rig;
    slow(rig);
    rig.config.timing.switch_poll = Milliseconds(20);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.fabric->notify = nullptr;
    rig.fabric->tell(2, PhysicalSwitchEvent::kLinkStateChange);
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("switch.record", "link-change"); }));
}

TEST(Records, SwitchWithoutThemIsAskedOnceOverAConnection) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return rig.fabric->asked_for_records == 1; }));
    rig.released(rig.online("host0", 1).id);
    EXPECT_EQ(rig.fabric->asked_for_records, 1);
    rig.fabric->drop_connection();
    EXPECT_TRUE(rig.run_until([&] { return rig.fabric->asked_for_records == 2; }));
}

TEST(Records, SwitchThatHangsUpWhenAskedIsNotAskedForGood) {
    Rig rig;
    int asked = 0;
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When) -> std::optional<Error> {
        if (command != "request_notifications") return std::nullopt;
        ++asked;
        rig.fabric->drop_connection();
        return Error{ErrorCode::kUnavailable, "the switch closed the connection"};
    };
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return asked == 2; }));
    rig.released(rig.online("host0", 1).id);
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Records, SwitchThatWasDownIsAskedWhenItIsBack) {
    Rig rig;
    slow(rig);
    rig.config.timing.switch_poll = Milliseconds(5);
    rig.config.flapping.limit = 0;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    for (int i = 0; i < 4; ++i) {
        rig.fabric->down = true;
        ASSERT_TRUE(rig.run_until([&] { return rig.events_of("switch.down") == i + 1; }));
        rig.fabric->down = false;
        rig.fabric->drop_connection();
        ASSERT_TRUE(rig.run_until([&] { return rig.events_of("switch.up") == i + 2; }));
    }
    rig.fabric->tell(2, PhysicalSwitchEvent::kLinkStateChange);
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("switch.record", "link-change"); }));
}

TEST(Records, SwitchThatClearsNothingIsToldOnce) {
    Rig rig;
    slow(rig);
    rig.config.timing.switch_poll = Milliseconds(10);
    rig.fabric->clears_records = false;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.fabric->tell(2, PhysicalSwitchEvent::kLinkStateChange);
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("switch.record", "records-useless"); }));
    rig.released(rig.online("host0", 1).id);
    EXPECT_EQ(rig.events_of("switch.record"), 2);
}

TEST(Records, RecordsWithoutEndAreReadToALimit) {
    Rig rig;
    slow(rig);
    rig.config.flapping.limit = 0;
    rig.fabric->add_mld(2, {1});
    // Whatever is cleared, there is another one.
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command == "event_records" && when == FakeSwitch::When::kBefore) {
            const auto quiet = std::exchange(rig.fabric->notify, nullptr);
            rig.fabric->tell(2, PhysicalSwitchEvent::kLinkStateChange);
            rig.fabric->notify = quiet;
        }
        return std::nullopt;
    };
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("switch.record", "no end"); }));
    rig.settle();
    EXPECT_LE(rig.events_of("switch.record"), 20);
    EXPECT_TRUE(rig.online("host0", 1).was_online);
}

TEST(Records, RecordOfAPortThatDoesNotExistHarmsNothing) {
    Rig rig;
    slow(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.fabric->tell(77, PhysicalSwitchEvent{9});
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("switch.record", "unknown-record"); }));
    EXPECT_TRUE(rig.online("host0", 1).was_online);
}

TEST(Records, AnyBytesCanBeDescribed) {
    for (const fmapi::Uuid& format :
         {fmapi::kPhysicalSwitchRecord, fmapi::kVirtualSwitchRecord, fmapi::kMldPortRecord, fmapi::Uuid{}})
        for (unsigned fill = 0; fill < 256; ++fill) {
            fmapi::EventRecord record;
            record.format = format;
            record.data.fill(static_cast<std::uint8_t>(fill));
            const SwitchRecord described = describe_record(record, EventLog{static_cast<std::uint8_t>(fill)});
            EXPECT_FALSE(described.code.empty());
            EXPECT_FALSE(described.detail.empty());
        }
}

fmapi::EventRecord binding(fmapi::VppbBinding status, std::uint8_t port, std::uint8_t ld) {
    fmapi::VirtualSwitchRecord data;
    data.vppb = 1;
    data.binding = static_cast<std::uint8_t>(status);
    data.port = port;
    data.ld = ld;
    fmapi::EventRecord record;
    record.format = fmapi::kVirtualSwitchRecord;
    const auto bytes = fmapi::encode(data);
    for (std::size_t i = 0; i < bytes.size(); ++i) record.data[i] = std::to_integer<std::uint8_t>(bytes[i]);
    return record;
}

TEST(Records, BindingThatIsKnownIsNoNews) {
    Switch known;
    known.vcss.push_back({0, true, 0, std::nullopt, std::vector<Vppb>(2)});
    Vppb& vppb = known.vcss[0].vppbs[1];
    vppb.id = 1;
    vppb.status = BindingStatus::kBoundLd;
    vppb.port = 2;
    vppb.ld = LdId{3};
    const auto log = EventLog::kInformational;
    EXPECT_TRUE(is_known(binding(fmapi::VppbBinding::kBoundLd, 2, 3), log, known));
    EXPECT_FALSE(is_known(binding(fmapi::VppbBinding::kBoundLd, 2, 4), log, known));
    EXPECT_FALSE(is_known(binding(fmapi::VppbBinding::kUnbound, 0xff, 0xff), log, known));
    EXPECT_FALSE(is_known(binding(fmapi::VppbBinding::kBoundLd, 2, 3), EventLog::kWarning, known));
}

}  // namespace
}  // namespace memtide::fm

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/cxl-emul/hosts/scripted_fleet.h"

// Emulated hosts whose switch has dynamic capacity devices: what is sent over the wire, and what comes of it.
namespace memtide::emul::test {
namespace {

using fmapi::DynamicCapacityEvent;
using fmapi::ReturnCode;

constexpr std::uint8_t kPort = 2;
constexpr fmapi::DcTag kTag{7};
constexpr std::uint8_t kForced = fmapi::kDcForcedRemoval | fmapi::kDcSanitizeOnRelease;
constexpr std::string_view kWantNothing = "[]";

class FleetDcdTest : public ScriptedFleet {
  protected:
    FleetDcdTest() : ScriptedFleet(DeviceKind::kDcd) {}

    template <typename Command>
    static fmapi::Message at_device(Manager& fm, const typename Command::Request& request) {
        return fm.call_device(kPort, fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request)));
    }
    // Asks again while memory is being erased.
    static ReturnCode add(Manager& fm, std::uint16_t host, Bytes size) {
        for (int i = 0; i < 10'000; ++i) {
            const auto code = at_device<fmapi::InitiateDynamicCapacityAdd>(
                                  fm, {.host = host, .length = size.value, .tag = kTag})
                                  .return_code;
            if (code != ReturnCode::kRetryRequired) return code;
            std::this_thread::sleep_for(1ms);
        }
        throw std::runtime_error("memory is being erased for ever");
    }
    static ReturnCode release(Manager& fm, std::uint16_t host, std::uint8_t flags) {
        return at_device<fmapi::InitiateDynamicCapacityRelease>(fm,
                                                                {.host = host, .flags = flags, .tag = kTag})
            .return_code;
    }
    static std::vector<fmapi::DcExtent> extents_of(Manager& fm, std::uint16_t host) {
        const auto answer = at_device<fmapi::GetDcRegionExtentLists>(fm, {.host = host, .extents = 100});
        return Manager::decode_success<fmapi::GetDcRegionExtentListsResponse>(answer).extents;
    }
    // What the device told its manager.
    static std::vector<fmapi::DynamicCapacityRecord> records_of(Manager& fm) {
        const auto read = Manager::decode_success<fmapi::GetEventRecordsResponse>(
            at_device<fmapi::GetEventRecords>(fm, {fmapi::EventLog::kDynamicCapacity}));
        std::vector<fmapi::DynamicCapacityRecord> all;
        for (const fmapi::EventRecord& record : read.records)
            all.push_back(
                fmapi::decode<fmapi::DynamicCapacityRecord>(std::as_bytes(std::span(record.data))).value());
        return all;
    }
    std::size_t surprises() {
        return background_.call([&] { return fleet_->ledger().surprises().size(); });
    }
    // Host 0 has LD 0 with memory online.
    void bring_online(Manager& fm) {
        want(kWantOnline);
        ASSERT_EQ(add(fm, 0, mebibytes(256)), ReturnCode::kSuccess);
        ASSERT_EQ(fm.bind(0, 0, kPort, 0), ReturnCode::kSuccess);
        ASSERT_TRUE(reports("host0", "online"));
    }
};

TEST_F(FleetDcdTest, WhatWasOfferedBeforeTheBindIsOnlineAndGivenBackWhenItIsLetGo) {
    Manager fm = connect();
    bring_online(fm);
    EXPECT_EQ(extents_of(fm, 0).size(), 1U);
    EXPECT_EQ(
        background_.call([&] { return manager_->reported("host0").at("regions").at(0).at("online_bytes"); }),
        mebibytes(256).value);
    want(kWantOffline);
    ASSERT_TRUE(reports("host0", "offline"));
    EXPECT_TRUE(extents_of(fm, 0).empty());
    const auto records = records_of(fm);
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].event, DynamicCapacityEvent::kAddCapacityResponse);
    EXPECT_EQ(records[1].event, DynamicCapacityEvent::kCapacityReleased);
    EXPECT_EQ(fm.unbind(0, 0), ReturnCode::kSuccess);
    EXPECT_EQ(counts().bound, 0U);
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetDcdTest, WhatIsOfferedAfterTheBindIsOnlineToo) {
    Manager fm = connect();
    want(kWantOnline);
    ASSERT_EQ(fm.bind(0, 0, kPort, 0), ReturnCode::kSuccess);
    ASSERT_TRUE(reports("host0", "found"));
    ASSERT_EQ(add(fm, 0, mebibytes(256)), ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "online"));
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetDcdTest, ADeadAgentKeepsNoDriverFromAccepting) {
    Manager fm = connect();
    ASSERT_TRUE(begin(HostFault::kAgentDies).has_value());
    ASSERT_EQ(fm.bind(0, 0, kPort, 0), ReturnCode::kSuccess);
    ASSERT_EQ(add(fm, 0, mebibytes(256)), ReturnCode::kSuccess);
    EXPECT_TRUE(eventually([&] { return extents_of(fm, 0).size() == 1; }));
    ASSERT_EQ(release(fm, 0, 0), ReturnCode::kSuccess);
    EXPECT_TRUE(eventually([&] { return extents_of(fm, 0).empty(); })) << "not in use: given back at once";
}

TEST_F(FleetDcdTest, AForcedReleaseUnderUseIsASurpriseAndTheNextHostGetsEmptyMemory) {
    Manager fm = connect();
    bring_online(fm);
    ASSERT_EQ(release(fm, 0, kForced), ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "found"));
    EXPECT_EQ(surprises(), 1U);
    ASSERT_EQ(fm.bind(1, 0, kPort, 1), ReturnCode::kSuccess);
    // All that the device has.
    ASSERT_EQ(add(fm, 1, gibibytes(4)), ReturnCode::kSuccess);
    EXPECT_TRUE(eventually([&] { return !extents_of(fm, 1).empty(); }));
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetDcdTest, WhoRefusesCapacityGetsNone) {
    Manager fm = connect();
    ASSERT_TRUE(begin(HostFault::kRefusesCapacity).has_value());
    want(kWantOnline);
    ASSERT_EQ(add(fm, 0, mebibytes(256)), ReturnCode::kSuccess);
    ASSERT_EQ(fm.bind(0, 0, kPort, 0), ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "found"));
    EXPECT_TRUE(extents_of(fm, 0).empty());
    ASSERT_EQ(records_of(fm).size(), 1U);
    EXPECT_EQ(records_of(fm)[0].extent.length, 0U);
    ASSERT_TRUE(end(HostFault::kRefusesCapacity).has_value());
    ASSERT_EQ(add(fm, 0, mebibytes(256)), ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "online"));
}

TEST_F(FleetDcdTest, AfterARebootTheHostGoesOnWithItsExtents) {
    Manager fm = connect();
    bring_online(fm);
    ASSERT_TRUE(
        background_.call([&] { return fleet_->begin_fault(HostId("host0"), HostFault::kReboot, 20ms); })
            .has_value());
    EXPECT_TRUE(eventually([&] {
        return background_.call([&] {
            return manager_->reported("host0").at("boot_id") == "host0-boot-2" &&
                   manager_->state("host0") == "online";
        });
    }));
    EXPECT_EQ(extents_of(fm, 0).size(), 1U);
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetDcdTest, AHostWhoseLinkIsDownAnswersWhenItIsUp) {
    Manager fm = connect();
    bring_online(fm);
    ASSERT_TRUE(begin(HostFault::kLinkDown).has_value());
    EXPECT_TRUE(reports("host0", "absent"));
    EXPECT_EQ(extents_of(fm, 0).size(), 1U);
    ASSERT_TRUE(end(HostFault::kLinkDown).has_value());
    EXPECT_TRUE(reports("host0", "online"));
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetDcdTest, AnUnbindBySurpriseLeavesNothingToTheNextHost) {
    Manager fm = connect();
    bring_online(fm);
    ASSERT_EQ(fm.unbind(0, 0, fmapi::UnbindOption::kSurpriseHotRemove), ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "absent"));
    EXPECT_EQ(surprises(), 1U);
    want(kWantNothing);
    ASSERT_EQ(add(fm, 0, gibibytes(4)), ReturnCode::kSuccess);
    ASSERT_EQ(fm.bind(1, 0, kPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(extents_of(fm, 0).size(), 1U);
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetDcdTest, ASwitchThatWasWithoutPowerHasGivenNothingToAnybody) {
    {
        Manager fm = connect();
        bring_online(fm);
        ASSERT_TRUE(background_.call([&] { return fleet_->power_off(SwitchId("switch0"), std::nullopt); })
                        .has_value());
        EXPECT_TRUE(fm.is_dropped());
    }
    EXPECT_TRUE(reports("host0", "absent"));
    ASSERT_TRUE(background_.call([&] { return fleet_->power_on(SwitchId("switch0")); }).has_value());
    ASSERT_TRUE(eventually([&] { return counts().switches_off == 0; }));
    Manager fm = connect();
    EXPECT_TRUE(extents_of(fm, 0).empty());
    ASSERT_EQ(fm.bind(0, 0, kPort, 0), ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "found"));
    ASSERT_EQ(add(fm, 0, gibibytes(4)), ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "online"));
    EXPECT_EQ(violations(), 0U);
}

}  // namespace
}  // namespace memtide::emul::test

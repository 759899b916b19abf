#include "fabric-manager/placement/placement.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "fabric-manager/placement/ld_fit.h"

namespace memtide::fm {
namespace {

const SwitchId kSwitch("switch0");
const HostId kHost("host0");

// A host with `vppbs` vPPBs on one switch; devices are added by the tests.
class PlacementTest : public ::testing::Test {
  protected:
    PlacementTest() {
        inventory.add_switch(kSwitch, "fake");
        inventory.add_host(kHost, {{kSwitch, 0}});
        inventory.switch_up(kSwitch, Time{});
        show_vppbs(2);
    }
    void show_vppbs(std::size_t count) {
        SwitchReading reading;
        Vcs vcs;
        for (std::size_t i = 0; i < count; ++i) {
            Vppb vppb;
            vppb.id = static_cast<std::uint8_t>(i);
            vcs.vppbs.push_back(vppb);
        }
        reading.vcss.push_back(vcs);
        inventory.apply(kSwitch, reading);
    }
    // Sizes in units of 256 MiB.
    void add_mld(std::uint8_t port, std::vector<std::uint64_t> units, std::uint64_t spare = 0,
                 Bytes granularity = kCxlGranule) {
        DeviceReading device{
            port, DeviceKind::kMld, SerialNumber{port * 0x100u}, kCxlGranule * spare, granularity, {}};
        for (std::size_t i = 0; i < units.size(); ++i) {
            device.size += kCxlGranule * units[i];
            device.lds.push_back({LdId{static_cast<std::uint16_t>(i)}, SerialNumber{port * 0x100u + 1 + i},
                                  kCxlGranule * units[i]});
        }
        ASSERT_TRUE(inventory.apply(kSwitch, device));
    }
    void add_sld(std::uint8_t port, std::uint64_t units) {
        DeviceReading device{port,
                             DeviceKind::kSld,
                             SerialNumber{port * 0x100u},
                             kCxlGranule * units,
                             kCxlGranule,
                             {{kWholeDevice, SerialNumber{port * 0x100u}, kCxlGranule * units}}};
        ASSERT_TRUE(inventory.apply(kSwitch, device));
    }
    PlacementRequest request(std::uint64_t units) {
        PlacementRequest request;
        request.host = kHost;
        request.size = kCxlGranule * units;
        return request;
    }
    // One that has to come from one device.
    Outcome<PartPlacement> ask(std::uint64_t units) {
        PlacementRequest one = request(units);
        one.policy.max_devices = 1;
        Outcome<Plan> plan = place(inventory, one);
        if (!plan) return std::unexpected(plan.error());
        return plan->parts.at(0);
    }
    std::string refusal(std::uint64_t units) { return ask(units).error().code; }
    // Takes the LD and the vPPB of a placement.
    void take(const PartPlacement& placement, std::string id, std::optional<std::string> tenant = {}) {
        Composition c;
        c.id = CompositionId(std::move(id));
        c.host = kHost;
        c.tenant = std::move(tenant);
        Part part;
        part.size = placement.size;
        part.memory = placement.memory;
        part.where = placement.where;
        part.carve = placement.carve;
        c.parts = {part};
        ASSERT_TRUE(inventory.claim(c));
    }
    Inventory inventory;
};

TEST_F(PlacementTest, FreeLdOfExactlyTheSizeIsTaken) {
    add_mld(2, {2, 1});
    const Outcome<PartPlacement> placement = ask(1);
    ASSERT_TRUE(placement);
    EXPECT_EQ(placement->memory.ld, LdId{1});
    EXPECT_EQ(placement->serial, SerialNumber{0x202});
    EXPECT_EQ(placement->port, 2);
    EXPECT_EQ(placement->where, (VppbAddress{kSwitch, 0, 0}));
    EXPECT_FALSE(placement->carve);
}

TEST_F(PlacementTest, CleanLdIsPreferred) {
    add_mld(2, {1, 1});
    inventory.set_clean({ask(1)->memory.device, LdId{1}}, true);
    EXPECT_EQ(ask(1)->memory.ld, LdId{1});
}

TEST_F(PlacementTest, ExactLdOfALaterDeviceComesBeforeACarve) {
    add_mld(2, {0}, 4);
    add_mld(3, {1});
    EXPECT_EQ(ask(1)->port, 3);
}

TEST_F(PlacementTest, WholeSldIsTakenOnlyForItsSize) {
    add_sld(2, 2);
    EXPECT_EQ(ask(2)->memory.ld, kWholeDevice);
    EXPECT_EQ(refusal(1), problem::kNoFittingDevice);
    EXPECT_NE(ask(1).error().detail.find("512MiB whole"), std::string::npos);
}

TEST_F(PlacementTest, SlotOfAnMldIsAllocated) {
    add_mld(2, {1, 0}, 3);
    const Outcome<PartPlacement> placement = ask(2);
    ASSERT_TRUE(placement && placement->carve);
    EXPECT_EQ(placement->memory.ld, LdId{1});
    EXPECT_EQ(placement->carve->after, (std::vector<LdSize>{{LdId{1}, kCxlGranule * 2}}));
}

TEST_F(PlacementTest, FreeLdsAreJoined) {
    add_mld(2, {1, 1, 1});
    const Outcome<PartPlacement> placement = ask(3);
    ASSERT_TRUE(placement && placement->carve);
    EXPECT_EQ(placement->carve->after,
              (std::vector<LdSize>{{LdId{0}, kCxlGranule * 3}, {LdId{1}, Bytes{}}, {LdId{2}, Bytes{}}}));
    EXPECT_EQ(placement->carve->before,
              (std::vector<LdSize>{{LdId{0}, kCxlGranule}, {LdId{1}, kCxlGranule}, {LdId{2}, kCxlGranule}}));
}

TEST_F(PlacementTest, LargerLdIsShrunk) {
    add_mld(2, {4});
    const Outcome<PartPlacement> placement = ask(1);
    ASSERT_TRUE(placement && placement->carve);
    EXPECT_EQ(placement->carve->after, (std::vector<LdSize>{{LdId{0}, kCxlGranule}}));
}

TEST_F(PlacementTest, LdsInUseAreNotTouchedByACarve) {
    add_mld(2, {1, 1, 1});
    take(*ask(1), "c-1");
    const Outcome<PartPlacement> placement = ask(2);
    ASSERT_TRUE(placement && placement->carve);
    for (const LdSize& one : placement->carve->after) EXPECT_NE(one.ld, LdId{0});
}

TEST_F(PlacementTest, TwoPlacementsNeverShareMemoryOrVppb) {
    add_mld(2, {1, 0, 0}, 1);
    const PartPlacement first = *ask(1);
    take(first, "c-1");
    const PartPlacement second = *ask(1);
    EXPECT_NE(first.memory, second.memory);
    EXPECT_NE(first.where, second.where);
    take(second, "c-2");
    EXPECT_EQ(refusal(1), problem::kExceedsFree);
}

TEST_F(PlacementTest, GranularityOfTheDeviceIsRespected) {
    add_mld(2, {4}, 4, gibibytes(1));
    EXPECT_EQ(refusal(1), problem::kNoFittingDevice);
    EXPECT_TRUE(ask(8));
}

TEST_F(PlacementTest, QuarantinedMemoryIsNotGivenOut) {
    add_mld(2, {1});
    inventory.set_quarantined({ask(1)->memory.device, LdId{0}}, true);
    EXPECT_EQ(refusal(1), problem::kExceedsFree);
}

TEST_F(PlacementTest, WhatADeviceRefusedToCarveIsNotPlannedOnItAgain) {
    add_mld(2, {1, 1, 1, 2}, 1);
    add_mld(3, {1, 1, 1, 1, 1, 1, 1});
    ASSERT_EQ(ask(3)->port, 2);
    inventory.note_refused_carve(ask(3)->memory, kCxlGranule * 3);
    EXPECT_EQ(ask(3)->port, 3);
    EXPECT_EQ(ask(2)->port, 2);  // that LD is there
    inventory.note_refused_carve(ask(3)->memory, kCxlGranule * 3);
    const Outcome<PartPlacement> refused = ask(3);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, problem::kNoFittingDevice);
    EXPECT_NE(
        refused.error().detail.find("up to 512MiB in multiples of 256MiB (1.5GiB are free, but not in one "
                                    "piece: it refused to carve 768MiB)"),
        std::string::npos)
        << refused.error().detail;
    ASSERT_EQ(refused.error().excluded.size(), 2U);
    EXPECT_EQ(refused.error().excluded[0].constraint, "size");
    // From both together it can be had.
    const Outcome<Plan> both = place(inventory, request(4));
    ASSERT_TRUE(both);
    EXPECT_EQ(both->parts.size(), 2U);
}

TEST_F(PlacementTest, DeviceThatRefusesAllCarvesStillGivesTheLdsThatItHas) {
    add_mld(2, {3, 1}, 1);
    inventory.note_refused_carve({device_id(DeviceKind::kMld, SerialNumber{0x200}, kSwitch, 2), LdId{0}},
                                 kCxlGranule);
    EXPECT_TRUE(ask(3));
    EXPECT_TRUE(ask(1));
    EXPECT_EQ(refusal(2), problem::kNoFittingDevice);
    const Device& device = *inventory.devices_behind(kSwitch).front();
    EXPECT_EQ(largest_fit(device, kCxlGranule * 2), kCxlGranule);
    EXPECT_EQ(largest_fit(device, kCxlGranule * 9), kCxlGranule * 3);
    // As many as it takes: the one that fits, and another device for the rest.
    add_mld(3, {1});
    const Outcome<Plan> plan = place(inventory, request(2));
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->parts.size(), 2U);
}

TEST_F(PlacementTest, CarveIsWidenedToAllThatIsFreeOfTheDevice) {
    add_mld(2, {1, 1, 1, 0, 1, 2});
    take(*ask(1), "c-1");
    const PartPlacement planned = *ask(3);
    take(planned, "c-2");
    Part part;
    part.memory = planned.memory;
    part.size = planned.size;
    part.carve = planned.carve;
    const Device& device = *inventory.device(planned.memory.device);
    const std::optional<Carve> wider = widen(device, part);
    ASSERT_TRUE(wider);
    Bytes before;
    for (const LdSize& one : wider->before) before += one.size;
    EXPECT_EQ(before, kCxlGranule * 5);
    for (const LdSize& one : wider->after) {
        EXPECT_EQ(one.size, one.ld == planned.memory.ld ? kCxlGranule * 3 : Bytes{});
        EXPECT_NE(one.ld, LdId{0}) << "that is another's";
    }
    part.carve = wider;
    Composition c;
    c.id = CompositionId("c-2");
    c.host = kHost;
    part.where = planned.where;
    c.parts = {part};
    ASSERT_TRUE(inventory.claim(c));
    EXPECT_EQ(inventory.pool().free, Bytes{});  // while it is carved
    EXPECT_FALSE(widen(device, part));
}

TEST_F(PlacementTest, PartThatJoinsARegionKeepsToItsSwitchAndAwayFromTheDevicesOfTheOthers) {
    add_mld(2, {1});
    add_mld(3, {1});
    PlacementRequest one = request(1);
    one.without = {ask(1)->memory.device};
    EXPECT_EQ(place(inventory, one)->parts.at(0).port, 3);
    one.only_at = SwitchId("switch7");
    EXPECT_FALSE(place(inventory, one));
}

TEST_F(PlacementTest, RefusalsAreTyped) {
    add_mld(2, {1, 1});
    EXPECT_EQ(refusal(0), problem::kSizeZero);
    PlacementRequest odd = request(1);
    odd.size = Bytes{4096};
    EXPECT_EQ(place(inventory, odd).error().code, problem::kSizeNotMultiple);
    PlacementRequest nobody = request(1);
    nobody.host = HostId("nobody");
    EXPECT_EQ(place(inventory, nobody).error().code, problem::kUnknownHost);
    EXPECT_EQ(refusal(3), problem::kExceedsCapacity);
    take(*ask(1), "c-1");
    EXPECT_EQ(refusal(2), problem::kExceedsFree);
    add_mld(3, {2});
    take(*ask(2), "c-2");
    add_mld(4, {1});
    EXPECT_EQ(refusal(1), problem::kNoFreeVppb);
}

TEST_F(PlacementTest, MemoryOfSeveralDevicesIsNotAddedUpForOneThatMustBeOnOne) {
    add_mld(2, {2});
    add_mld(3, {3});
    EXPECT_EQ(refusal(4), problem::kExceedsLargestDevice);
    EXPECT_TRUE(ask(3));
}

TEST_F(PlacementTest, HostBehindASwitchThatIsDownIsNotReachable) {
    add_mld(2, {1});
    inventory.switch_down(kSwitch, "no answer");
    EXPECT_EQ(refusal(1), problem::kHostNotReachable);
    inventory.add_host(HostId("alone"), {});
    PlacementRequest alone = request(1);
    alone.host = HostId("alone");
    EXPECT_EQ(place(inventory, alone).error().code, problem::kHostNotReachable);
}

}  // namespace
}  // namespace memtide::fm

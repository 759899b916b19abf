// Policies, limits and what a refusal says, on a pod of several switches.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/fabric-manager/placement/pod.h"

namespace memtide::fm {
namespace {

std::vector<Bytes> sizes_of(const Plan& plan) {
    std::vector<Bytes> sizes;
    for (const PartPlacement& part : plan.parts) sizes.push_back(part.size);
    std::ranges::sort(sizes);
    return sizes;
}
Bytes units(std::uint64_t count) { return kCxlGranule * count; }

// Two switches, a host at both, two MLDs of 4 units behind each.
class PolicyTest : public ::testing::Test {
  protected:
    PolicyTest() : pod(2, 4) {
        for (int at = 0; at < 2; ++at)
            for (std::uint8_t port = 2; port < 4; ++port) pod.add_mld(at, port, {4});
        pod.add_host("host0", {0, 1});
    }
    PlacementRequest request(std::uint64_t size, PlacementPolicy policy = {}) {
        return {HostId("host0"), units(size), policy, std::nullopt, {}, kMostParts};
    }
    Outcome<Plan> ask(std::uint64_t size, PlacementPolicy policy = {}) {
        return place(pod.inventory, request(size, policy));
    }
    static PlacementPolicy spread() {
        PlacementPolicy policy;
        policy.kind = PlacementKind::kSpread;
        return policy;
    }
    static PlacementPolicy ways(std::uint8_t count) {
        PlacementPolicy policy;
        policy.kind = PlacementKind::kBandwidth;
        policy.ways = count;
        return policy;
    }
    void set_windows(std::vector<std::uint8_t> ways_of) {
        for (const std::uint8_t one : ways_of)
            pod.inventory.host(HostId("host0"))
                ->windows.push_back({"decoder", one, gibibytes(64), gibibytes(64)});
    }
    Pod pod;
};

TEST_F(PolicyTest, PackTakesOneDeviceWhenOneIsEnough) {
    EXPECT_EQ(sizes_of(*ask(4)), (std::vector<Bytes>{units(4)}));
}

TEST_F(PolicyTest, PackPrefersTheDeviceThatIsFullestAlready) {
    pod.take(*ask(1), "c-1", "host0");
    const DeviceId used = pod.parts("c-1").at(0).memory.device;
    EXPECT_EQ(ask(2)->parts.at(0).memory.device, used);
}

TEST_F(PolicyTest, PackTakesAsFewDevicesAsItNeeds) {
    EXPECT_EQ(sizes_of(*ask(9)), (std::vector<Bytes>{units(1), units(4), units(4)}));
}

TEST_F(PolicyTest, SpreadMakesEqualPartsOnManyDevicesOfAllSwitches) {
    const Outcome<Plan> plan = ask(4, spread());
    ASSERT_TRUE(plan);
    EXPECT_EQ(sizes_of(*plan), (std::vector<Bytes>{units(1), units(1), units(1), units(1)}));
    EXPECT_FALSE(plan->interleaved);
}

TEST_F(PolicyTest, SpreadUsesTheLeastLoadedOfBothSwitchesFirst) {
    pod.take(*ask(1), "c-1", "host0");
    const DeviceId used = pod.parts("c-1").at(0).memory.device;
    PlacementPolicy policy = spread();
    policy.max_devices = 2;
    const Outcome<Plan> plan = ask(2, policy);
    ASSERT_TRUE(plan);
    EXPECT_NE(plan->parts.at(0).where.switch_id, plan->parts.at(1).where.switch_id);
    for (const PartPlacement& part : plan->parts) EXPECT_NE(part.memory.device, used);
}

TEST_F(PolicyTest, SpreadGivesWhatItCanWhenOneOfThemIsNearlyFull) {
    pod.take(*ask(3), "c-1", "host0");
    EXPECT_EQ(sizes_of(*ask(13, spread())), (std::vector<Bytes>{units(1), units(4), units(4), units(4)}));
}

TEST_F(PolicyTest, WaysOfOneSwitchAreInterleaved) {
    const Outcome<Plan> plan = ask(4, ways(2));
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->interleaved);
    EXPECT_EQ(sizes_of(*plan), (std::vector<Bytes>{units(2), units(2)}));
    EXPECT_EQ(plan->parts[0].where.switch_id, plan->parts[1].where.switch_id);
    EXPECT_NE(plan->parts[0].memory.device, plan->parts[1].memory.device);
}

TEST_F(PolicyTest, WaysOverHostBridgesNeedAWindowThatInterleavesThem) {
    EXPECT_EQ(ask(4, ways(4)).error().code, problem::kNoFittingDevice);
    set_windows({1, 2});
    const Outcome<Plan> plan = ask(4, ways(4));
    ASSERT_TRUE(plan) << plan.error().detail;
    std::map<SwitchId, int> at;
    for (const PartPlacement& part : plan->parts) ++at[part.where.switch_id];
    EXPECT_EQ(at.size(), 2u);
    for (const auto& [id, count] : at) EXPECT_EQ(count, 2);
}

TEST_F(PolicyTest, WaysThatCannotBeAreBadPlacements) {
    EXPECT_EQ(ask(4, ways(3)).error().code, problem::kBadPlacement);
    EXPECT_EQ(ask(4, ways(16)).error().code, problem::kBadPlacement);
    EXPECT_EQ(ask(3, ways(2)).error().code, problem::kSizeNotMultiple);
    PlacementPolicy packed_ways = ways(2);
    packed_ways.kind = PlacementKind::kPack;
    EXPECT_EQ(ask(2, packed_ways).error().code, problem::kBadPlacement);
}

TEST_F(PolicyTest, ShareBehindOneDeviceIsLimited) {
    PlacementPolicy policy;
    policy.max_percent_per_device = 50;
    EXPECT_EQ(sizes_of(*ask(4, policy)), (std::vector<Bytes>{units(2), units(2)}));
    pod.take(*ask(4), "c-1", "host0");
    // 4 of 6 units would be behind the first device; the 2 new ones have to go elsewhere.
    const Outcome<Plan> more = ask(2, policy);
    ASSERT_TRUE(more);
    for (const PartPlacement& part : more->parts)
        EXPECT_NE(part.memory.device, pod.parts("c-1").at(0).memory.device);
}

TEST_F(PolicyTest, ShareBehindOneSwitchIsLimited) {
    PlacementPolicy policy;
    policy.max_percent_per_switch = 50;
    std::map<SwitchId, Bytes> at;
    const Outcome<Plan> plan = ask(12, policy);
    ASSERT_TRUE(plan);
    for (const PartPlacement& part : plan->parts) at[part.where.switch_id] += part.size;
    EXPECT_EQ(at.size(), 2u);
    for (const auto& [id, size] : at) EXPECT_EQ(size, units(6));
}

TEST_F(PolicyTest, LimitThatLeavesNoWayIsNamed) {
    PlacementPolicy policy;
    policy.max_percent_per_device = 20;
    const Outcome<Plan> plan = ask(4, policy);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, problem::kLimitExceeded);
    ASSERT_EQ(plan.error().excluded.size(), 4u);
    EXPECT_EQ(plan.error().excluded[0].constraint, "max-percent-per-device");
}

TEST_F(PolicyTest, DevicesOfOtherTenantsAreLeftAlone) {
    pod.take(*ask(1), "c-1", "host0", "red");
    PlacementRequest mine = request(1);
    mine.tenant = "blue";
    mine.policy.exclusive_devices = true;
    mine.explain = true;
    const Outcome<Plan> plan = place(pod.inventory, mine);
    ASSERT_TRUE(plan);
    EXPECT_NE(plan->parts[0].memory.device, pod.parts("c-1").at(0).memory.device);
    ASSERT_EQ(plan->excluded.size(), 1u);
    EXPECT_EQ(plan->excluded[0].constraint, "exclusive-devices");
    mine.tenant = "red";
    EXPECT_EQ(place(pod.inventory, mine)->parts[0].memory.device, pod.parts("c-1").at(0).memory.device);
}

TEST_F(PolicyTest, ReserveIsKeptForThoseWhoMayUseIt) {
    PlacementRequest plain = request(10);
    plain.reserve = units(8);
    EXPECT_EQ(place(pod.inventory, plain).error().code, problem::kReserved);
    plain.policy.use_reserve = true;
    EXPECT_TRUE(place(pod.inventory, plain));
}

TEST_F(PolicyTest, RefusalSaysWhatWasAskedWhatIsFreeAndWhatKeptEachDeviceOut) {
    pod.take(*ask(3), "c-1", "host0");
    pod.take(*ask(4), "c-2", "host0");
    PlacementPolicy policy;
    policy.max_devices = 1;
    const Outcome<Plan> plan = ask(5, policy);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, problem::kExceedsLargestDevice);
    EXPECT_NE(plan.error().detail.find("1.25GiB"), std::string::npos) << plan.error().detail;
    EXPECT_NE(plan.error().detail.find("1GiB"), std::string::npos) << plan.error().detail;
    ASSERT_EQ(plan.error().excluded.size(), 4u);
    std::map<std::string, int> constraints;
    for (const Exclusion& one : plan.error().excluded) ++constraints[one.constraint];
    EXPECT_EQ(constraints["no-memory"], 1);
    EXPECT_EQ(constraints["size"], 3);
}

TEST_F(PolicyTest, PartsNeverExceedWhatTheCompositionMayHave) {
    PlacementRequest one = request(5);
    one.most_parts = 1;
    EXPECT_EQ(place(pod.inventory, one).error().code, problem::kNoFittingDevice);
    one.most_parts = 2;
    EXPECT_EQ(place(pod.inventory, one)->parts.size(), 2u);
}

}  // namespace
}  // namespace memtide::fm

#include "tiering-agent/hotplug/interleave.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/hotplug/plan_world.h"

namespace memtide::agent {
namespace {

// A memdev below the host bridge at `position` of a window that interleaves two.
Memdev memdev_at(std::string name, SerialNumber serial, unsigned position) {
    Memdev device = memdev(std::move(name), serial);
    device.free_decoder = "decoder-of-" + device.name;
    device.ram_windows = {{.name = "decoder0.0",
                           .largest_free = gibibytes(4),
                           .ways = 2,
                           .granularity = 1024,
                           .position = position}};
    return device;
}
Desired wanting_all(std::vector<SerialNumber> serials) {
    const Bytes size = kSize * serials.size();
    return {.revision = 3, .regions = {{.id = kId, .serials = std::move(serials), .size = size}}};
}

TEST(Plan, TargetsTakeTurnsAtTheHostBridgesOfTheWindow) {
    const auto plan = plan_one(wanting_all({{1}, {2}, {3}, {4}}),
                               seeing({memdev_at("mem1", {1}, 1), memdev_at("mem2", {2}, 1),
                                       memdev_at("mem3", {3}, 0), memdev_at("mem4", {4}, 0)}));
    expect_action(plan, ActionKind::kCreateRegion);
    EXPECT_EQ(plan.next->memdevs, (std::vector<std::string>{"mem3", "mem1", "mem4", "mem2"}));
    EXPECT_EQ(plan.next->decoders.at(1), "decoder-of-mem1");
    EXPECT_EQ(plan.next->granularity, 1024U);
}

TEST(Plan, MemdevsOfOneHostBridgeDoNotFillAWindowOfTwo) {
    const auto plan =
        plan_one(wanting_all({{1}, {2}}), seeing({memdev_at("mem1", {1}, 1), memdev_at("mem2", {2}, 1)}));
    EXPECT_EQ(error_code(plan), "no-window");
}

TEST(Plan, InterleavedRegionThatLostAMemdevCanStillGoDown) {
    Region region = region_with_blocks(BlockState::kOnline, true);
    region.targets = {{"decoder3.0", "mem0"}, {"decoder4.0", ""}};
    Desired rest = wanting(Want::kOffline);
    rest.regions[0].serials = {kSerial, {2}};
    expect_action(plan_one(rest, seeing({memdev()}, {region})), ActionKind::kOfflineBlocks);
}

TEST(Interleave, OffsetsTakeTurnsAtTheTargets) {
    const Interleave four{.ways = 4, .granularity = 512};
    EXPECT_EQ(four.target_at(0), 0U);
    EXPECT_EQ(four.target_at(511), 0U);
    EXPECT_EQ(four.target_at(512), 1U);
    EXPECT_EQ(four.target_at(3 * 512), 3U);
    EXPECT_EQ(four.target_at(4 * 512), 0U);
    EXPECT_EQ(Interleave{}.target_at(~0ULL), 0U);
}

}  // namespace
}  // namespace memtide::agent

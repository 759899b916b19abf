#include "tiering-agent/hotplug/leftovers.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/hotplug/plan_world.h"

namespace memtide::agent {
namespace {

Seen after_surprise_removal(BlockState state) {
    Region orphan = region_of("mem0");
    orphan.targets.clear();
    orphan.committed = orphan.enabled = false;
    orphan.dax.clear();
    const std::vector<MemoryBlock> blocks{block(kFirstBlock, state, state == BlockState::kOnline)};
    orphan.blocks = blocks;
    return seeing(
        {}, {orphan},
        {{.region = "region0", .serials = {kSerial}, .range = {kStart, kSize.value}, .blocks = blocks}});
}

TEST(Plan, DeviceThatVanishedUnderOnlineBlocksIsReportedAndCleanedUp) {
    const Plan plan =
        make_plan(wanting(Want::kOnline), after_surprise_removal(BlockState::kOnline), {}, kNow);
    EXPECT_EQ(plan.regions[0].observed.status, RegionStatus::kAbsent);
    EXPECT_EQ(error_code(plan.regions[0]), "device-vanished");
    ASSERT_EQ(plan.cleanups.size(), 1U);
    EXPECT_EQ(plan.cleanups[0].kind, ActionKind::kOfflineBlocks);
    EXPECT_EQ(plan.cleanups[0].blocks, std::vector<std::uint64_t>{kFirstBlock});
}

TEST(Plan, LeftoverRegionIsDestroyedThenItsRecordForgotten) {
    Seen seen = after_surprise_removal(BlockState::kOffline);
    Plan plan = make_plan({}, seen, {}, kNow);
    ASSERT_EQ(plan.cleanups.size(), 1U);
    EXPECT_EQ(plan.cleanups[0].kind, ActionKind::kDestroyRegion);
    EXPECT_EQ(plan.cleanups[0].window, "decoder0.0");
    seen.regions.clear();
    plan = make_plan({}, seen, {}, kNow);
    ASSERT_EQ(plan.cleanups.size(), 1U);
    EXPECT_EQ(plan.cleanups[0].kind, ActionKind::kForgetRegion);
}

TEST(Plan, LeftoverBlocksThatStayAreWarnedAbout) {
    const Notes notes{{RegionId{CompositionId{"leftover-region0"}, 0},
                       {.kind = ActionKind::kOfflineBlocks, .failures = 1}}};
    const Plan plan = make_plan({}, after_surprise_removal(BlockState::kOnline), notes, kNow);
    ASSERT_EQ(plan.warnings.size(), 1U);
    EXPECT_EQ(plan.warnings[0].code, "device-vanished");
}

TEST(Plan, DeviceThatCameBackGetsANewRegionOnceTheOldIsCleared) {
    Seen seen = after_surprise_removal(BlockState::kOnline);
    seen.memdevs = {memdev()};
    expect_action(plan_one(wanting(Want::kOnline), seen), ActionKind::kOfflineBlocks);
    seen.regions[0].blocks[0].state = BlockState::kOffline;
    expect_action(plan_one(wanting(Want::kOnline), seen), ActionKind::kDestroyRegion);
    seen.regions.clear();
    expect_action(plan_one(wanting(Want::kOnline), seen), ActionKind::kCreateRegion);
}

TEST(Plan, StaleRecordOfALiveMemdevIsForgotten) {
    const Plan plan =
        make_plan({}, seeing({memdev()}, {}, {{.region = "region0", .serials = {kSerial}}}), {}, kNow);
    ASSERT_EQ(plan.cleanups.size(), 1U);
    EXPECT_EQ(plan.cleanups[0].kind, ActionKind::kForgetRegion);
}

TEST(Plan, UnfinishedRegionThatIsNoLongerAskedForIsDestroyed) {
    Region fresh{.name = "region0", .window = "decoder0.0"};
    const Plan plan =
        make_plan({}, seeing({memdev()}, {fresh}, {{.region = "region0", .serials = {kSerial}}}), {}, kNow);
    ASSERT_EQ(plan.cleanups.size(), 1U);
    EXPECT_EQ(plan.cleanups[0].kind, ActionKind::kDestroyRegion);
}

}  // namespace
}  // namespace memtide::agent

#include "tiering-agent/hotplug/plan.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/tiering-agent/hotplug/plan_world.h"

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;

// --- Up ---

TEST(Plan, CompositionWithoutMemdevIsAbsentAndNothingIsDone) {
    for (const Want want : {Want::kOnline, Want::kOffline}) {
        const auto plan = plan_one(wanting(want), seeing({memdev("mem0", kForeignSerial)}));
        EXPECT_EQ(plan.observed.status, RegionStatus::kAbsent);
        EXPECT_FALSE(plan.next.has_value());
    }
}

TEST(Plan, MemdevWithoutEndpointIsFoundAndWaitedFor) {
    Memdev early = memdev();
    early.has_endpoint = false;
    const auto plan = plan_one(wanting(Want::kOnline), seeing({early}));
    EXPECT_EQ(plan.observed.status, RegionStatus::kFound);
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, MemdevWithEndpointGetsARegionInAWindowThatFits) {
    Memdev device = memdev();
    device.ram_windows = {{.name = "decoder0.0", .largest_free = mebibytes(128), .ways = 1},
                          {.name = "decoder0.1", .largest_free = gibibytes(4), .ways = 2},
                          {.name = "decoder0.2", .largest_free = gibibytes(4), .ways = 1}};
    const auto plan = plan_one(wanting(Want::kOnline), seeing({device}));
    expect_action(plan, ActionKind::kCreateRegion);
    EXPECT_EQ(plan.next->window, "decoder0.2");
    EXPECT_EQ(plan.next->decoders.at(0), "decoder3.0");
    EXPECT_EQ(plan.next->serials, std::vector{kSerial});
}

TEST(Plan, WithoutAFittingWindowItFailsAndSaysSo) {
    Memdev device = memdev();
    device.ram_windows.clear();
    const auto plan = plan_one(wanting(Want::kOnline), seeing({device}));
    EXPECT_EQ(plan.observed.status, RegionStatus::kFailed);
    EXPECT_EQ(error_code(plan), "no-window");
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, MemdevSmallerThanTheCompositionIsRefused) {
    Memdev device = memdev();
    device.ram_size = mebibytes(128);
    const auto plan = plan_one(wanting(Want::kOnline), seeing({device}));
    EXPECT_EQ(error_code(plan), "size-mismatch");
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, MemdevWithoutFreeDecoderIsRefused) {
    Memdev device = memdev();
    device.free_decoder.clear();
    EXPECT_EQ(error_code(plan_one(wanting(Want::kOnline), seeing({device}))), "no-decoder");
}

TEST(Plan, TwoMemdevsWithTheSerialAreAmbiguousAndNeitherIsTouched) {
    for (const Want want : {Want::kOnline, Want::kOffline}) {
        const auto plan =
            plan_one(wanting(want), seeing({memdev("mem0"), memdev("mem1")}, {region_of("mem1")}));
        EXPECT_EQ(plan.observed.status, RegionStatus::kFailed);
        EXPECT_EQ(error_code(plan), "ambiguous-serial");
        EXPECT_FALSE(plan.next.has_value());
    }
}

TEST(Plan, EmptyRegionOfTheRecordIsConfigured) {
    Region fresh{.name = "region0", .window = "decoder0.0"};
    const auto plan = plan_one(wanting(Want::kOnline),
                               seeing({memdev()}, {fresh}, {{.region = "region0", .serials = {kSerial}}}));
    expect_action(plan, ActionKind::kConfigureRegion);
    EXPECT_EQ(plan.next->region, "region0");
    EXPECT_EQ(plan.next->decoders.at(0), "decoder3.0");
}

TEST(Plan, EmptyRegionWithoutARecordIsSomebodyElses) {
    Region fresh{.name = "region0", .window = "decoder0.0"};
    expect_action(plan_one(wanting(Want::kOnline), seeing({memdev()}, {fresh})), ActionKind::kCreateRegion);
    const auto plan = plan_one(wanting(Want::kOffline), seeing({memdev()}, {fresh}));
    EXPECT_EQ(plan.observed.status, RegionStatus::kOffline);
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, RecordedNameThatNowCarriesAnotherMemdevIsNotTouched) {
    const Seen seen = seeing({memdev(), memdev("mem1", kForeignSerial)}, {region_of("mem1")},
                             {{.region = "region0", .serials = {kSerial}}});
    expect_action(plan_one(wanting(Want::kOnline), seen), ActionKind::kCreateRegion);
    const Plan down = make_plan(wanting(Want::kOffline), seen, {}, kNow);
    EXPECT_EQ(down.regions[0].observed.status, RegionStatus::kOffline);
    EXPECT_TRUE(down.cleanups.empty());
}

TEST(Plan, RegionWithTargetSetIsConfiguredOnWithThatDecoder) {
    Region half = region_of("mem0");
    half.committed = half.enabled = false;
    half.dax.clear();
    half.targets = {{"decoder3.1", "mem0"}};
    const auto plan = plan_one(wanting(Want::kOnline), seeing({memdev()}, {half}));
    expect_action(plan, ActionKind::kConfigureRegion);
    EXPECT_EQ(plan.next->decoders.at(0), "decoder3.1");
}

TEST(Plan, RegionBegunForAnotherSizeIsDestroyed) {
    Region half = region_of("mem0");
    half.committed = half.enabled = false;
    half.dax.clear();
    half.range.size = mebibytes(512).value;
    expect_action(plan_one(wanting(Want::kOnline), seeing({memdev()}, {half})), ActionKind::kDestroyRegion);
}

TEST(Plan, CommittedRegionOfAnotherSizeIsLeftAlone) {
    Region other = region_of("mem0");
    other.range.size = mebibytes(128).value;
    const auto plan = plan_one(wanting(Want::kOnline), seeing({memdev()}, {other}));
    EXPECT_EQ(error_code(plan), "foreign-region");
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, InterleavedRegionIsForeignInBothDirections) {
    Region interleaved = region_of("mem0");
    interleaved.targets.push_back({"decoder4.0", "mem1"});
    for (const Want want : {Want::kOnline, Want::kOffline}) {
        const auto plan =
            plan_one(wanting(want), seeing({memdev(), memdev("mem1", kForeignSerial)}, {interleaved}));
        EXPECT_EQ(plan.observed.status, RegionStatus::kFailed);
        EXPECT_EQ(error_code(plan), "foreign-region");
        EXPECT_FALSE(plan.next.has_value());
    }
}

TEST(Plan, CommittedRegionIsEnabled) {
    Region region = region_of("mem0");
    region.enabled = false;
    region.dax.clear();
    expect_action(plan_one(wanting(Want::kOnline), seeing({memdev()}, {region})), ActionKind::kEnableRegion);
}

TEST(Plan, RegionWithoutDaxDeviceIsWaitedForWithTheModule) {
    Region region = region_of("mem0");
    region.dax.clear();
    expect_action(plan_one(wanting(Want::kOnline), seeing({memdev()}, {region})), ActionKind::kAwaitDax);
}

TEST(Plan, DaxDeviceInAnyOtherModeGoesToKmem) {
    for (const std::string driver : {"", "device_dax"}) {
        Region region = region_of("mem0");
        region.dax[0].driver = driver;
        const auto plan = plan_one(wanting(Want::kOnline), seeing({memdev()}, {region}));
        expect_action(plan, ActionKind::kBindKmem);
        EXPECT_EQ(plan.next->dax, "dax0.0");
    }
}

TEST(Plan, OfflineBlocksAreOnlinedAndOnlyThose) {
    Region region = region_with_blocks(BlockState::kOnline, true);
    region.blocks[1] = block(kFirstBlock + 1, BlockState::kOffline, false);
    const auto plan = plan_one(wanting(Want::kOnline), seeing({memdev()}, {region}));
    expect_action(plan, ActionKind::kOnlineBlocks);
    EXPECT_EQ(plan.next->blocks, std::vector<std::uint64_t>{kFirstBlock + 1});
    EXPECT_EQ(plan.observed.status, RegionStatus::kFound);
    EXPECT_EQ(plan.observed.online, kBlock);
}

TEST(Plan, AllBlocksOnlineMovableIsOnlineWithNodeAndRegion) {
    const auto plan =
        plan_one(wanting(Want::kOnline), seeing({memdev()}, {region_with_blocks(BlockState::kOnline, true)}));
    EXPECT_EQ(plan.observed.status, RegionStatus::kOnline);
    EXPECT_EQ(plan.observed.node, 1);
    EXPECT_EQ(plan.observed.region, "region0");
    EXPECT_EQ(plan.observed.online, kSize);
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, BlocksInAKernelZoneAreRezonedAndNeverReportedOnline) {
    const auto plan = plan_one(wanting(Want::kOnline),
                               seeing({memdev()}, {region_with_blocks(BlockState::kOnline, false)}));
    expect_action(plan, ActionKind::kRezoneBlocks);
    EXPECT_EQ(plan.next->blocks.size(), 2U);
    EXPECT_EQ(plan.observed.status, RegionStatus::kFound);
}

TEST(Plan, BlocksThatStayInAKernelZoneAreWarnedAboutByName) {
    const Seen seen = seeing({memdev()}, {region_with_blocks(BlockState::kOnline, false)});
    const Notes notes{{kId,
                       {.kind = ActionKind::kRezoneBlocks,
                        .failures = kFailuresUntilFailed,
                        .error = {"online-not-movable", "busy"}}}};
    const Plan plan = make_plan(wanting(Want::kOnline), seen, notes, kNow);
    EXPECT_EQ(plan.regions[0].observed.status, RegionStatus::kFailed);
    ASSERT_EQ(plan.warnings.size(), 1U);
    EXPECT_EQ(plan.warnings[0].code, "online-not-movable");
    EXPECT_NE(plan.warnings[0].detail.find("memory122, memory123"), std::string::npos)
        << plan.warnings[0].detail;
    expect_action(plan.regions[0], ActionKind::kRezoneBlocks);
}

TEST(Plan, HostPolicyOfOnliningInAKernelZoneIsWarnedAboutOnceSomethingIsWanted) {
    Seen seen = seeing({memdev()});
    for (const std::string policy : {"online", "online_kernel", "online_movable", "offline", ""}) {
        seen.auto_online = policy;
        const auto warnings = make_plan(wanting(Want::kOnline), seen, {}, kNow).warnings;
        const bool dangerous = policy == "online" || policy == "online_kernel";
        EXPECT_EQ(std::ranges::count(warnings, "auto-online-policy", &Finding::code), dangerous ? 1 : 0)
            << policy;
        EXPECT_TRUE(make_plan({}, seen, {}, kNow).warnings.empty());
    }
}

TEST(Plan, BlockThatIsGoingOfflineIsNotOnline) {
    Region region = region_with_blocks(BlockState::kOnline, true);
    region.blocks[0].state = BlockState::kGoingOffline;
    region.blocks[0].movable = false;
    const auto plan = plan_one(wanting(Want::kOnline), seeing({memdev()}, {region}));
    EXPECT_EQ(plan.observed.status, RegionStatus::kFound);
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, MissingBlocksAreAFailure) {
    Region region = region_with_blocks(BlockState::kOnline, true);
    region.blocks.pop_back();
    EXPECT_EQ(error_code(plan_one(wanting(Want::kOnline), seeing({memdev()}, {region}))), "blocks-missing");
}

TEST(Plan, RegionSmallerThanABlockCannotGoOnline) {
    Region region = region_of("mem0");
    region.dax[0].driver = "";
    Seen seen = seeing({memdev()}, {region});
    seen.block_size = gibibytes(2);
    const auto plan = plan_one(wanting(Want::kOnline), seen);
    EXPECT_EQ(plan.observed.status, RegionStatus::kFailed);
    EXPECT_EQ(error_code(plan), "block-too-large");
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, MisalignedRegionIsOnlineWithWhatFitsAndAWarning) {
    Desired desired = wanting(Want::kOnline);
    desired.regions[0].size = gibibytes(4);
    Memdev device = memdev();
    device.ram_size = gibibytes(4);
    Region region = region_of("mem0");
    region.range = {gibibytes(15).value,
                    gibibytes(4).value};  // from the middle of block 7 to that of block 9
    region.dax[0].range = region.range;
    region.blocks = {block(8, BlockState::kOnline, true)};
    Seen seen = seeing({device}, {region});
    seen.block_size = gibibytes(2);
    const Plan plan = make_plan(desired, seen, {}, kNow);
    EXPECT_EQ(plan.regions[0].observed.status, RegionStatus::kOnline);
    EXPECT_EQ(plan.regions[0].observed.online, gibibytes(2));
    ASSERT_EQ(plan.warnings.size(), 1U);
    EXPECT_EQ(plan.warnings[0].code, "not-aligned");
}

// --- Down ---

TEST(Plan, ReleaseWithoutRegionIsOffline) {
    const auto plan = plan_one(wanting(Want::kOffline), seeing({memdev()}));
    EXPECT_EQ(plan.observed.status, RegionStatus::kOffline);
    EXPECT_FALSE(plan.next.has_value());
}

TEST(Plan, ReleaseOfflinesTheBlocksThatAreNotYet) {
    Region region = region_with_blocks(BlockState::kOnline, true);
    region.blocks[0] = block(kFirstBlock, BlockState::kOffline, false);
    Desired desired = wanting(Want::kOffline);
    desired.regions[0].force = true;
    desired.regions[0].drain_deadline = kNow + 60s;
    const auto plan = plan_one(desired, seeing({memdev()}, {region}));
    expect_action(plan, ActionKind::kOfflineBlocks);
    EXPECT_EQ(plan.next->blocks, std::vector<std::uint64_t>{kFirstBlock + 1});
    EXPECT_TRUE(plan.next->force);
    EXPECT_EQ(plan.next->deadline, kNow + 60s);
    EXPECT_EQ(plan.observed.status, RegionStatus::kDraining);
}

TEST(Plan, ReleaseOfBlocksInAKernelZoneIsTriedToo) {
    expect_action(plan_one(wanting(Want::kOffline),
                           seeing({memdev()}, {region_with_blocks(BlockState::kOnline, false)})),
                  ActionKind::kOfflineBlocks);
}

TEST(Plan, KmemIsUnboundOnlyWhenEveryBlockIsOffline) {
    Region region = region_with_blocks(BlockState::kOffline, false);
    expect_action(plan_one(wanting(Want::kOffline), seeing({memdev()}, {region})), ActionKind::kUnbindKmem);
    region.blocks[1].state = BlockState::kGoingOffline;
    expect_action(plan_one(wanting(Want::kOffline), seeing({memdev()}, {region})),
                  ActionKind::kOfflineBlocks);
}

TEST(Plan, RegionIsDestroyedWhenKmemIsGone) {
    for (const std::string driver : {"", "device_dax"}) {
        Region region = region_of("mem0");
        region.dax[0].driver = driver;
        const auto plan = plan_one(wanting(Want::kOffline), seeing({memdev()}, {region}));
        expect_action(plan, ActionKind::kDestroyRegion);
        EXPECT_EQ(plan.next->decoders.at(0), "decoder3.0");
    }
}

TEST(Plan, UnfinishedRegionIsDestroyedOnRelease) {
    Region fresh{.name = "region0", .window = "decoder0.0"};
    expect_action(plan_one(wanting(Want::kOffline),
                           seeing({memdev()}, {fresh}, {{.region = "region0", .serials = {kSerial}}})),
                  ActionKind::kDestroyRegion);
}

TEST(Plan, CancelledReleaseOnlinesAgainFromAnyStep) {
    Region region = region_with_blocks(BlockState::kOffline, false);
    expect_action(plan_one(wanting(Want::kOnline), seeing({memdev()}, {region})), ActionKind::kOnlineBlocks);
    region.dax[0].driver = "";
    region.blocks.clear();
    expect_action(plan_one(wanting(Want::kOnline), seeing({memdev()}, {region})), ActionKind::kBindKmem);
}

TEST(Plan, DrainWithHoldersReportsThemUntilTheDeadlineAndFailsAfterIt) {
    const Seen seen = seeing({memdev()}, {region_with_blocks(BlockState::kOnline, true)});
    const std::vector<Holder> holders{{.block = "memory122", .pid = 7, .command = "redis", .bytes = {4096}}};
    const Notes notes{{kId,
                       {.kind = ActionKind::kOfflineBlocks,
                        .failures = 100,
                        .error = {"still-held", "memory122 busy"},
                        .holders = holders}}};
    Desired desired = wanting(Want::kOffline);
    desired.regions[0].drain_deadline = kNow + 1s;
    auto plan = plan_one(desired, seen, notes);
    EXPECT_EQ(plan.observed.status, RegionStatus::kDraining);
    EXPECT_EQ(error_code(plan), "still-held");
    EXPECT_EQ(plan.observed.holders, holders);
    desired.regions[0].drain_deadline = kNow;
    plan = plan_one(desired, seen, notes);
    EXPECT_EQ(plan.observed.status, RegionStatus::kFailed);
    EXPECT_EQ(error_code(plan), "drain-deadline");
    expect_action(plan, ActionKind::kOfflineBlocks);  // it goes on trying
}

TEST(Plan, StepThatKeepsFailingMakesTheCompositionFailedButIsTriedOn) {
    Notes notes{
        {kId, {.kind = ActionKind::kCreateRegion, .failures = 1, .error = {"create-region-failed", "x"}}}};
    auto plan = plan_one(wanting(Want::kOnline), seeing({memdev()}), notes);
    EXPECT_EQ(plan.observed.status, RegionStatus::kFound);
    EXPECT_EQ(error_code(plan), "create-region-failed");
    notes[kId].failures = kFailuresUntilFailed;
    plan = plan_one(wanting(Want::kOnline), seeing({memdev()}), notes);
    EXPECT_EQ(plan.observed.status, RegionStatus::kFailed);
    expect_action(plan, ActionKind::kCreateRegion);
}

TEST(Plan, NoteOfAnotherStepIsNotReported) {
    const Notes notes{{kId, {.kind = ActionKind::kBindKmem, .failures = 9, .error = {"x", "x"}}}};
    EXPECT_EQ(error_code(plan_one(wanting(Want::kOnline), seeing({memdev()}), notes)), "");
}

// --- What is not asked for ---

TEST(Plan, MemdevsAndRegionsThatNobodyAskedForAreNotTouched) {
    const Seen seen =
        seeing({memdev("mem0", kForeignSerial)}, {region_with_blocks(BlockState::kOnline, true)});
    EXPECT_TRUE(make_plan({}, seen, {}, kNow).cleanups.empty());
    const Plan plan = make_plan(wanting(Want::kOffline), seen, {}, kNow);
    EXPECT_TRUE(plan.cleanups.empty());
    EXPECT_FALSE(plan.regions[0].next.has_value());
}

TEST(Plan, OwnRegionThatIsNoLongerAskedForIsLeftAndWarnedAbout) {
    const Seen seen = seeing({memdev()}, {region_with_blocks(BlockState::kOnline, true)},
                             {{.region = "region0", .serials = {kSerial}, .range = {kStart, kSize.value}}});
    const Plan plan = make_plan({}, seen, {}, kNow);
    EXPECT_TRUE(plan.cleanups.empty());
    ASSERT_EQ(plan.warnings.size(), 1U);
    EXPECT_EQ(plan.warnings[0].code, "unlisted-region");
}

TEST(Plan, TwoCompositionsGetTheirStepsIndependently) {
    Desired desired = wanting(Want::kOnline);
    desired.regions.push_back(
        {.id = {CompositionId{"c-2"}, 0}, .serials = {{2}}, .size = kSize, .want = Want::kOffline});
    Region second = region_of("mem1");
    second.name = "region1";
    second.range.start += kSize.value;
    second.blocks = {block(kFirstBlock + 2, BlockState::kOnline, true)};
    const Plan plan = make_plan(desired, seeing({memdev(), memdev("mem1", {2})}, {second}), {}, kNow);
    expect_action(plan.regions[0], ActionKind::kCreateRegion);
    expect_action(plan.regions[1], ActionKind::kOfflineBlocks);
    EXPECT_EQ(plan.regions[1].next->blocks, std::vector<std::uint64_t>{kFirstBlock + 2});
}

// --- Blocks ---

TEST(WholeBlocks, TrimsBothEnds) {
    const std::uint64_t mib = 1 << 20;
    EXPECT_EQ(whole_blocks({256 * mib, 256 * mib}, kBlock).first, 2U);
    EXPECT_EQ(whole_blocks({256 * mib, 256 * mib}, kBlock).count, 2U);
    EXPECT_EQ(whole_blocks({250 * mib, 256 * mib}, kBlock).count, 1U);
    EXPECT_EQ(whole_blocks({250 * mib, 100 * mib}, kBlock).count, 0U);
    EXPECT_EQ(whole_blocks({0, 0}, kBlock).count, 0U);
    EXPECT_EQ(whole_blocks({~0ULL - mib, 2 * mib}, kBlock).count, 0U);
    EXPECT_EQ(whole_blocks({0, mib}, {}).count, 0U);
}

}  // namespace
}  // namespace memtide::agent

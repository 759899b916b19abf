// The agent's steps on a kernel that is faked down to its files: from plug to online and back, with faults,
// and with kills at every write.
#include "tiering-agent/hotplug/reconciler.h"

#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "tests/tiering-agent/hotplug/agent_on_fake_kernel.h"

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;

using Agent = AgentOnFakeKernel;

TEST_F(Agent, OnlinesAPluggedDeviceMovableAndReportsNodeAndRegion) {
    kernel_.plug("mem0", kSerial);
    const auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.status, RegionStatus::kOnline);
    EXPECT_EQ(observed.node, 1);
    EXPECT_EQ(observed.region, "region0");
    EXPECT_EQ(observed.online, mebibytes(256));
    ASSERT_EQ(kernel_.blocks().size(), 2U);
    for (const auto& [index, block] : kernel_.blocks()) EXPECT_EQ(block.zone, FakeKernel::Zone::kMovable);
    ASSERT_EQ(records_->all().size(), 1U);
    EXPECT_EQ(records_->all()[0].range.start, kernel_.window_start);
}

TEST_F(Agent, TakesItAwayAgainAndLeavesNothing) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
    expect_nothing_left();
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);  // and once more
}

TEST_F(Agent, WaitsForTheDeviceThenReacts) {
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kAbsent);
    kernel_.plug("mem0", kSerial);
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
}

TEST_F(Agent, KilledBeforeAnyWriteItGoesOnAndFinishes) {
    for (const bool after : {false, true}) {
        for (int writes = 0; writes < 40; ++writes) {
            SCOPED_TRACE(testing::Message()
                         << "killed " << (after ? "after" : "before") << " write " << writes);
            kernel_.plug("mem0", kSerial);
            kernel_.writes_until_killed = writes;
            kernel_.killed_after_the_write = after;
            bool online = false;
            bool killed = false;
            try {
                online = run(wanting(Want::kOnline)).status == RegionStatus::kOnline;
                run(wanting(Want::kOffline));
            } catch (const Killed&) {
                killed = true;
            }
            kernel_.writes_until_killed = -1;
            crash();
            // Whichever way it was going, both wishes can be had afterwards.
            if (writes % 2 == 0 || online) {
                EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
                ASSERT_EQ(kernel_.regions.size(), 1U) << "a region was made twice";
            }
            EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
            expect_nothing_left();
            kernel_.devices.clear();
            run({});
            if (!killed) break;  // it never got that far
            ASSERT_LT(writes, 39) << "more writes than expected: raise the bound";
        }
    }
}

TEST_F(Agent, NeverTouchesWhatIsNotItsOwn) {
    kernel_.plug("mem0", kForeignSerial);
    run(wanting(Want::kOnline, kForeignSerial));  // somebody's region, made with another tool
    ASSERT_TRUE(records_->forget("region0").has_value());
    kernel_.plug("mem1", kSerial);
    kernel_.writes.clear();
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
    EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
    run({});
    EXPECT_EQ(kernel_.names_touched(), (std::set<std::string>{"decoder0.0", "decoder4.0", "region1", "dax1.0",
                                                              "memory124", "memory125"}));
    EXPECT_TRUE(kernel_.block(122).online);
}

TEST_F(Agent, TwoDevicesInOneNodeAreTakenAwayOneByOne) {
    kernel_.plug("mem0", kSerial);
    kernel_.plug("mem1", {2});
    Desired both = wanting(Want::kOnline);
    both.regions.push_back({.id = {CompositionId{"c-2"}, 0}, .serials = {{2}}, .size = mebibytes(256)});
    run(both);
    EXPECT_EQ(last_.regions[0].node, last_.regions[1].node);
    both.regions[0].want = Want::kOffline;
    run(both);
    EXPECT_EQ(last_.regions[0].status, RegionStatus::kOffline);
    EXPECT_EQ(last_.regions[1].status, RegionStatus::kOnline);
    EXPECT_EQ(kernel_.blocks().size(), 2U);
}

TEST_F(Agent, PolicyThatOnlinesInAKernelZoneDoesNotTrapTheMemory) {
    kernel_.auto_online = FakeKernel::AutoOnline::kKernelZone;
    kernel_.plug("mem0", kSerial);
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
    for (const auto& [index, block] : kernel_.blocks()) EXPECT_EQ(block.zone, FakeKernel::Zone::kMovable);
}

TEST_F(Agent, PolicyThatOnlinesMovableIsAccepted) {
    kernel_.auto_online = FakeKernel::AutoOnline::kMovable;
    kernel_.plug("mem0", kSerial);
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
}

TEST_F(Agent, BlocksStuckInAKernelZoneAreNamedAndStillTakenBackWhenTheKernelLets) {
    kernel_.auto_online = FakeKernel::AutoOnline::kKernelZone;
    kernel_.plug("mem0", kSerial);
    kernel_.faults["memory122/state"] = {ErrorCode::kConflict, -1};
    auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.status, RegionStatus::kFailed);
    EXPECT_EQ(observed.error->code, "online-not-movable");
    EXPECT_TRUE(warned("online-not-movable"));
    EXPECT_NE(observed.error->detail.find("memory122"), std::string::npos);
    EXPECT_EQ(observed.error->detail.find("memory123"), std::string::npos);
    kernel_.faults.clear();
    EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
    expect_nothing_left();
}

TEST_F(Agent, BusyBlocksAreRetriedUntilTheyGo) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    kernel_.block(122).busy = 3;
    EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
    expect_nothing_left();
}

TEST_F(Agent, HeldBlockIsReportedWhileTheOthersGoOffline) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    kernel_.block(122).busy = -1;
    Desired desired = wanting(Want::kOffline);
    desired.regions[0].drain_deadline = wall_ + 60s;
    auto observed = run(desired);
    EXPECT_EQ(observed.status, RegionStatus::kDraining);
    EXPECT_EQ(observed.error->code, "still-held");
    EXPECT_EQ(observed.online, mebibytes(128));
    EXPECT_EQ(kernel_.regions.at("region0").dax_driver, "kmem")
        << "kmem must not be unbound under online blocks";
    wall_ += 61s;
    observed = run(desired);
    EXPECT_EQ(observed.status, RegionStatus::kFailed);
    EXPECT_EQ(observed.error->code, "drain-deadline");
    kernel_.block(122).busy = 0;
    EXPECT_EQ(run(desired).status, RegionStatus::kOffline);
}

TEST_F(Agent, CancelledReleaseOnlinesWhatWentOffline) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    kernel_.block(122).busy = -1;
    run(wanting(Want::kOffline));
    EXPECT_FALSE(kernel_.block(123).online);
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
    EXPECT_TRUE(kernel_.block(123).online);
}

TEST_F(Agent, UdevRuleThatOnlinesBehindItsBackCannotMakeItUnbindKmem) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    kernel_.block(122).busy = -1;
    const Action unbind{.kind = ActionKind::kUnbindKmem,
                        .id = kId,
                        .serials = {kSerial},
                        .region = "region0",
                        .dax = "dax0.0",
                        .range = {kernel_.window_start, mebibytes(256).value}};
    EXPECT_TRUE(host_->perform(unbind).error.has_value());
    EXPECT_EQ(kernel_.regions.at("region0").dax_driver, "kmem");
}

TEST_F(Agent, DaxDeviceInDevdaxModeIsTurnedIntoMemory) {
    kernel_.dax_binds_to_kmem = false;
    kernel_.plug("mem0", kSerial);
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
    run(wanting(Want::kOffline));
    // And one that somebody bound to device_dax.
    run(wanting(Want::kOnline));
    for (const auto index : {122, 123})
        ASSERT_TRUE(
            kernel_.write("sys/devices/system/memory/memory" + std::to_string(index) + "/state", "offline")
                .has_value());
    ASSERT_TRUE(kernel_.write("sys/bus/dax/drivers/kmem/unbind", "dax0.0").has_value());
    ASSERT_TRUE(kernel_.write("sys/bus/dax/drivers/device_dax/new_id", "dax0.0").has_value());
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
}

class AgentWithoutKmem : public AgentOnFakeKernel {
  protected:
    Result<> load_module(const std::string& name) override {
        if (name != "kmem") return {};
        if (!loadable) return fail(ErrorCode::kNotFound, "there is no kernel module kmem");
        kernel_.has_kmem = true;
        kernel_.sync();
        return {};
    }
    bool loadable = true;
};

TEST_F(AgentWithoutKmem, LoadsTheModuleWhenItIsNeeded) {
    kernel_.has_kmem = false;
    kernel_.plug("mem0", kSerial);
    EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
}

TEST_F(AgentWithoutKmem, SaysClearlyThatTheModuleIsMissing) {
    kernel_.has_kmem = false;
    loadable = false;
    kernel_.plug("mem0", kSerial);
    const auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.status, RegionStatus::kFailed);
    EXPECT_EQ(observed.error->code, "kmem-missing");
    EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
}

TEST_F(Agent, KernelThatDoesNotCommitIsReportedAndTheRegionCanBeTakenAway) {
    kernel_.plug("mem0", kSerial);
    kernel_.faults["/commit"] = {ErrorCode::kNotFound, -1};
    const auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.status, RegionStatus::kFailed);
    EXPECT_EQ(observed.error->code, "configure-region-failed");
    EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
    expect_nothing_left();
}

TEST_F(Agent, TransientRefusalsOfEveryFileAreOvercome) {
    for (const char* file :
         {"create_ram_region", "mode", "dpa_size", "interleave_ways", "size", "target0", "commit",
          "cxl_region/bind", "memory122/state", "kmem/unbind", "delete_region"}) {
        SCOPED_TRACE(file);
        kernel_.plug("mem0", kSerial);
        kernel_.faults = {{file, {ErrorCode::kConflict, 1}}};
        EXPECT_EQ(run(wanting(Want::kOnline)).status, RegionStatus::kOnline);
        kernel_.faults = {{file, {ErrorCode::kConflict, 1}}};
        EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
        EXPECT_TRUE(kernel_.regions.empty());
        kernel_.devices.clear();
        run({});
    }
}

TEST_F(Agent, DevicePulledOutUnderOnlineMemoryIsReportedAndCleanedUp) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    kernel_.block(122).busy = -1;
    kernel_.pull("mem0");
    auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.status, RegionStatus::kAbsent);
    ASSERT_TRUE(observed.error.has_value());
    EXPECT_EQ(observed.error->code, "device-vanished");
    EXPECT_TRUE(warned("device-vanished"));
    EXPECT_FALSE(kernel_.block(123).online) << "what can be taken offline should be";
    kernel_.block(122).busy = 0;
    observed = run(wanting(Want::kOnline));
    EXPECT_FALSE(observed.error.has_value());
    EXPECT_TRUE(kernel_.regions.empty());
    EXPECT_TRUE(records_->all().empty());
}

TEST_F(Agent, DeviceThatComesBackAfterBeingPulledOutGoesOnlineElsewhere) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    kernel_.pull("mem0");
    kernel_.plug("mem1", kSerial);
    const auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.status, RegionStatus::kOnline);
    EXPECT_NE(kernel_.regions.begin()->second.start, kernel_.window_start);
}

TEST_F(Agent, DeviceUnboundWhileOfflineIsForgottenQuietly) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    run(wanting(Want::kOffline));
    kernel_.pull("mem0");
    const auto observed = run(wanting(Want::kOffline));
    EXPECT_EQ(observed.status, RegionStatus::kAbsent);
    EXPECT_FALSE(observed.error.has_value());
    EXPECT_TRUE(last_.warnings.empty());
}

TEST_F(Agent, LargeMemoryBlocksAreRefusedBeforeKmem) {
    FakeKernel large(root_.path() + "/large", gibibytes(2));
    large.dax_binds_to_kmem = false;
    large.plug("mem0", kSerial);
    SysfsHost host({large, large, *records_, modules_, mover_, interruption_});
    reconciler_ = std::make_unique<Reconciler>(
        host, RetryTimes{}, [] { return false; }, [this](const Observed& o) { last_ = o; });
    const auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.error->code, "block-too-large");
    EXPECT_EQ(run(wanting(Want::kOffline)).status, RegionStatus::kOffline);
    reconciler_.reset();
}

TEST_F(Agent, SettledCompositionCausesNoMoreWrites) {
    kernel_.plug("mem0", kSerial);
    run(wanting(Want::kOnline));
    const auto writes = kernel_.writes.size();
    for (int i = 0; i < 5; ++i) run(wanting(Want::kOnline));
    EXPECT_EQ(kernel_.writes.size(), writes);
}

TEST_F(Agent, FailuresBackOff) {
    kernel_.plug("mem0", kSerial);
    kernel_.faults["create_ram_region"] = {ErrorCode::kIo, -1};
    const auto started = now_;
    run(wanting(Want::kOnline), 12);
    EXPECT_GT(now_ - started, 10s);
}

TEST_F(Agent, InterleavedRegionComesUpOverAllItsMemdevsAndGoesAsOne) {
    kernel_.plug("mem0", {1});
    kernel_.plug("mem1", {2});
    Desired both{
        .revision = 1,
        .regions = {{.id = kId, .serials = {{1}, {2}}, .size = mebibytes(512), .want = Want::kOnline}}};
    EXPECT_EQ(run(both).status, RegionStatus::kOnline);
    const FakeKernel::FakeRegion& region = kernel_.regions.at("region0");
    EXPECT_EQ(region.ways, 2U);
    EXPECT_EQ(region.size, mebibytes(512).value);
    EXPECT_EQ(region.targets.size(), 2U);
    both.regions[0].want = Want::kOffline;
    EXPECT_EQ(run(both).status, RegionStatus::kOffline);
    EXPECT_TRUE(kernel_.regions.empty());
    for (const auto& [name, device] : kernel_.devices) EXPECT_EQ(device.reserved, 0U);
}

TEST_F(Agent, InterleavedRegionWaitsForAllItsMemdevs) {
    kernel_.plug("mem0", {1});
    const Desired both{
        .revision = 1,
        .regions = {{.id = kId, .serials = {{1}, {2}}, .size = mebibytes(512), .want = Want::kOnline}}};
    EXPECT_EQ(run(both).status, RegionStatus::kFound);
    EXPECT_TRUE(kernel_.regions.empty());
    kernel_.plug("mem1", {2});
    EXPECT_EQ(run(both).status, RegionStatus::kOnline);
}

}  // namespace
}  // namespace memtide::agent

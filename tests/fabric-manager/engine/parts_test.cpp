// Compositions of several parts.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

void two_devices(Rig& rig) {
    rig.fabric->add_mld(2, {2, 0}, 2);
    rig.fabric->add_mld(3, {2, 0}, 2);
}

TEST(Parts, CapacityOfSeveralDevicesBecomesOneComposition) {
    Rig rig;
    two_devices(rig);
    rig.start_ready();
    const Composition c = rig.online("host0", 6);
    ASSERT_EQ(c.parts.size(), 2u);
    EXPECT_NE(c.parts[0].memory.device, c.parts[1].memory.device);
    for (const Part& part : c.parts) EXPECT_EQ(part.state, kOnline);
    rig.released(c.id);
    EXPECT_EQ(rig.manager->pool().free, rig.manager->pool().capacity);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Parts, DryRunSaysWhereAndTakesNothing) {
    Rig rig;
    two_devices(rig);
    rig.start_ready();
    CompositionRequest request;
    request.host = HostId("host0");
    request.size = kCxlGranule * 2;
    request.placement = spread();
    const Outcome<PlannedComposition> plan = rig.manager->plan(request);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->composition.parts.size(), 2u);
    EXPECT_TRUE(rig.manager->list({}).items.empty());
    EXPECT_EQ(rig.manager->pool().free, rig.manager->pool().capacity);
}

TEST(Parts, DefaultsOfTheConfigurationLimitWhatARequestLeavesOpen) {
    Rig rig;
    two_devices(rig);
    rig.config.placement_defaults.all.max_percent_per_device = 50;
    rig.start_ready();
    CompositionRequest request;
    request.host = HostId("host0");
    request.size = kCxlGranule;
    const Outcome<PlannedComposition> refused = rig.manager->plan(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, problem::kLimitExceeded);
    ASSERT_FALSE(refused.error().excluded.empty());
    EXPECT_NE(refused.error().excluded[0].detail.find("(the default)"), std::string::npos);
    request.limits.max_percent_per_device = request.placement.max_percent_per_device = 100;
    EXPECT_TRUE(rig.manager->plan(request));
    request.may_loosen = false;
    EXPECT_FALSE(rig.manager->plan(request));
    request.size = kCxlGranule * 2;
    const Outcome<PlannedComposition> plan = rig.manager->plan(request);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->composition.placement.max_percent_per_device, 50);
    EXPECT_EQ(plan->composition.parts.size(), 2u);
}

TEST(Parts, InterleavedPartsAreOneRegionAndComeOnlineTogether) {
    Rig rig;
    two_devices(rig);
    rig.start_ready();
    const Composition c = rig.online("host0", 2, ways(2));
    ASSERT_EQ(c.parts.size(), 2u);
    EXPECT_EQ(c.parts[0].region, c.parts[1].region);
    const Outcome<DesiredState> desired =
        rig.run(rig.manager->desired(HostId("host0"), std::nullopt, Milliseconds(0)));
    ASSERT_EQ(desired->regions.size(), 1u);
    EXPECT_EQ(desired->regions[0].serials.size(), 2u);
    EXPECT_EQ(desired->regions[0].size, kCxlGranule * 2);
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Parts, NoPartOfAnInterleavedRegionIsUnboundBeforeTheAgentLetGoOfAll) {
    Rig rig;
    two_devices(rig);
    rig.start_ready();
    const Composition c = rig.online("host0", 2, ways(2));
    rig.agents[0]->refuses_to_let_go = true;
    ASSERT_TRUE(rig.release(c.id));
    rig.run_until([n = 0]() mutable { return ++n > 50; });
    EXPECT_EQ(rig.fabric->calls["unbind"], 0);
    rig.agents[0]->refuses_to_let_go = false;
    rig.report(*rig.agents[0]);
    EXPECT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Parts, OnePartThatCannotBeBoundFailsAllAndNothingStaysBehind) {
    Rig rig;
    two_devices(rig);
    int binds = 0;
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "bind" || when != FakeSwitch::When::kBefore || ++binds < 2) return std::nullopt;
        return Error{ErrorCode::kInvalidArgument, "no"};
    };
    rig.start_ready();
    const Outcome<Created> created = rig.create("host0", 2, spread(2));
    ASSERT_TRUE(created);
    ASSERT_TRUE(rig.reaches(created->composition.id, kFailed));
    const Composition c = rig.get(created->composition.id);
    EXPECT_EQ(c.reason->code, "bind-refused");
    for (const Part& part : c.parts) EXPECT_TRUE(is_end(part.state));
    EXPECT_EQ(rig.manager->pool().free, rig.manager->pool().capacity);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Parts, HostThatRebootsGetsAllPartsBack) {
    Rig rig;
    two_devices(rig);
    rig.start_ready();
    const Composition c = rig.online("host0", 2, spread(2));
    rig.agents[0]->boot_id = "boot-2";
    rig.report(*rig.agents[0]);
    ASSERT_TRUE(rig.run_until([&] {
        const Composition now = rig.get(c.id);
        return now.state == kOnline &&
               std::ranges::all_of(now.parts, [](const Part& part) { return part.boot_id == "boot-2"; });
    }));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Parts, RestartedManagerGoesOnWithAllOfThem) {
    Rig rig;
    two_devices(rig);
    rig.start_ready();
    const Composition before = rig.online("host0", 4, spread(2));
    const CompositionId draining = rig.online("host1", 2, spread(2)).id;
    rig.agents[1]->refuses_to_let_go = true;
    ASSERT_TRUE(rig.release(draining));
    ASSERT_TRUE(rig.reaches(draining, kDraining));
    rig.kill();
    rig.agents[1]->refuses_to_let_go = false;
    rig.start_ready();
    EXPECT_TRUE(rig.reaches(draining, kReleased));
    EXPECT_EQ(rig.get(before.id).parts.size(), 2u);
    EXPECT_EQ(rig.get(before.id).state, kOnline);
    EXPECT_EQ(rig.wrong(), kNone);
}

}  // namespace
}  // namespace memtide::fm

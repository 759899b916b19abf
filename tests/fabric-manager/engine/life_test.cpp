// A composition's life as clients see it.
#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

std::vector<std::string> names(const Composition& c) {
    std::vector<std::string> result;
    for (const Step& step : c.steps) result.push_back(step.name);
    return result;
}

TEST(Life, CompositionComesOnlineAndIsReleased) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    ASSERT_EQ(c.parts.size(), 1u);
    EXPECT_EQ(c.parts[0].node, 1);
    EXPECT_EQ(c.parts[0].region_name, "region0");
    EXPECT_EQ(c.parts[0].serial.value, rig.fabric->port(2).lds[0].serial);
    EXPECT_TRUE(rig.fabric->port(2).lds[0].online);
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.reaches(c.id, kReleased));
    const Composition end = rig.get(c.id);
    EXPECT_EQ(names(end), (std::vector<std::string>{"place", "erase-before-bind", "bind", "online", "drain",
                                                    "unbind", "erase"}));
    for (const Step& step : end.steps) EXPECT_TRUE(step.ended) << step.name;
    EXPECT_FALSE(rig.fabric->port(2).lds[0].dirty);
    EXPECT_GT(end.manager_overhead_ms, 0);
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, MemoryErasedByTheManagerIsNotErasedAgainBeforeItIsUsedAgain) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition first = rig.online("host0", 1);
    ASSERT_TRUE(rig.release(first.id));
    ASSERT_TRUE(rig.reaches(first.id, kReleased));
    const Composition second = rig.online("host1", 1);
    EXPECT_EQ(rig.fabric->calls["sanitize"], 2);
    EXPECT_EQ(names(second), (std::vector<std::string>{"place", "bind", "online"}));
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, WholeSldIsComposed) {
    Rig rig;
    rig.fabric->add_sld(3, 2);
    rig.start_ready();
    const Composition c = rig.online("host1", 2);
    EXPECT_EQ(c.parts[0].memory.ld, kWholeDevice);
    ASSERT_TRUE(rig.release(c.id));
    EXPECT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, LdIsCarvedWhenNoneHasTheSize) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 0, 0}, 3);
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    EXPECT_EQ(rig.fabric->port(2).lds[1].size, (kCxlGranule * 2).value);
    EXPECT_EQ(c.parts[0].serial.value, rig.fabric->port(2).lds[1].serial);
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, FreeLdsAreCarvedAnew) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1});
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    EXPECT_EQ(rig.fabric->port(2).lds[0].size + rig.fabric->port(2).lds[1].size, (kCxlGranule * 2).value);
    EXPECT_EQ(rig.manager->pool().free, Bytes{});
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.manager->pool().free, kCxlGranule * 2);
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, ManyCompositionsAreInFlightAtOnce) {
    Rig rig;
    rig.fabric->background_polls = 3;
    rig.fabric->add_mld(2, {1, 1, 1, 1, 1, 1, 1, 1});
    rig.start_ready();
    std::vector<CompositionId> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(rig.create(i % 2 != 0 ? "host1" : "host0", 1)->composition.id);
    for (const CompositionId& id : ids) EXPECT_TRUE(rig.reaches(id, kOnline));
    EXPECT_EQ(rig.create("host0", 1).error().code, problem::kExceedsFree);
    for (const CompositionId& id : ids) EXPECT_TRUE(rig.release(id));
    for (const CompositionId& id : ids) EXPECT_TRUE(rig.reaches(id, kReleased));
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, ReleaseWaitsUntilHostReportsOffline) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.config.timing.drain_deadline = Milliseconds(30);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.agents[0]->refuses_to_let_go = true;
    rig.agents[0]->holders = {{"memory32", 12, "redis-server", mebibytes(128)}};
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.drain-overdue", "redis-server"); }));
    EXPECT_EQ(rig.get(c.id).state, kDraining);
    EXPECT_EQ(rig.get(c.id).parts[0].holders, rig.agents[0]->holders);
    EXPECT_EQ(rig.fabric->calls["unbind"], 0);
    rig.agents[0]->refuses_to_let_go = false;
    rig.report(*rig.agents[0]);
    EXPECT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, ForceDoesNotWaitForTheAgentAndSaysSo) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.agents[0]->enabled = false;
    ASSERT_TRUE(rig.release(c.id));
    EXPECT_EQ(rig.get(c.id).state, kDraining);
    ASSERT_TRUE(rig.release(c.id, true));
    ASSERT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.fabric->last_unbind_option, 2);
    EXPECT_TRUE(rig.get(c.id).forced);
    EXPECT_TRUE(rig.has_event("composition.forced"));
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, ForceEndsAManagedRemovalThatTheHostNeverAnswers) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->background_polls = 1'000'000'000;
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.run_until([&] { return rig.fabric->calls["unbind"] == 1; }));
    rig.fabric->background_polls = 0;
    ASSERT_TRUE(rig.release(c.id, true));
    ASSERT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.fabric->calls["abort"], 1);
    EXPECT_EQ(rig.fabric->last_unbind_option, 2);
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(Life, ReportFromBeforeTheReleaseDoesNotCountAsLettingGo) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnlining));
    const std::uint64_t before =
        rig.run(rig.manager->desired(HostId("host0"), std::nullopt, Milliseconds(0)))->revision;
    ASSERT_TRUE(rig.release(id));
    ObservedReport stale{"1.0", "boot-1", before, {}, {}, {}, {}};
    ObservedRegion absent;
    absent.id = {id, 0};
    absent.serials = {rig.get(id).parts[0].serial};
    stale.regions = {absent};
    ASSERT_TRUE(rig.run(rig.manager->observed(HostId("host0"), stale)));
    rig.run_until([n = 0]() mutable { return ++n > 10; });
    EXPECT_EQ(rig.get(id).state, kDraining);
    stale.revision_seen = before + 1;
    ASSERT_TRUE(rig.run(rig.manager->observed(HostId("host0"), stale)));
    EXPECT_TRUE(rig.reaches(id, kReleased));
}

TEST(Life, ReleaseRightAfterCreateLeavesNothingBehind) {
    for (int turns = 0; turns < 40; turns += 3) {
        Rig rig;
        rig.fabric->background_polls = 2;
        rig.fabric->add_mld(2, {1});
        rig.start_ready();
        const CompositionId id = rig.create("host0", 1)->composition.id;
        rig.run_until([&, n = 0]() mutable { return ++n > turns; });
        ASSERT_TRUE(rig.release(id));
        ASSERT_TRUE(rig.reaches(id, kReleased)) << turns;
        EXPECT_EQ(rig.manager->pool().free, kCxlGranule);
        EXPECT_EQ(rig.fabric->vppb(0, 0).binding, fmapi::VppbBinding::kUnbound);
        EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
    }
}

TEST(Life, TtlReleasesByItself) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    CompositionRequest request;
    request.host = HostId("host0");
    request.size = kCxlGranule;
    request.ttl = std::chrono::seconds(1);
    const Outcome<Created> created = rig.run(rig.manager->create(request, std::nullopt));
    ASSERT_TRUE(created);
    EXPECT_TRUE(rig.reaches(created->composition.id, kReleased));
    EXPECT_TRUE(rig.has_event("composition.expired"));
}

TEST(Life, EndedCompositionCannotBeReleasedAgain) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.release(c.id).error().code, problem::kCompositionEnded);
    EXPECT_EQ(rig.release(CompositionId("c-nobody")).error().code, problem::kUnknownComposition);
}

TEST(Life, OldEndedCompositionsAreForgotten) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.config.keep_ended = 4;
    rig.start_ready();
    CompositionId first;
    for (int i = 0; i < 70; ++i) {
        const Composition c = rig.online("host0", 1);
        if (i == 0) first = c.id;
        ASSERT_TRUE(rig.release(c.id));
        ASSERT_TRUE(rig.reaches(c.id, kReleased));
    }
    EXPECT_FALSE(rig.manager->get(first));
    EXPECT_LT(rig.manager->list({}).items.size(), 70u);
}

}  // namespace
}  // namespace memtide::fm

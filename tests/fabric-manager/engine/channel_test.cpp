// The agent channel, idempotency, events, waiting.
#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

ObservedReport report_of(const Composition& c, ObservedState state, std::uint64_t revision = 1) {
    ObservedReport report{"1.0", "boot-1", revision, {}, {}, {}, {}};
    ObservedRegion one;
    one.id = {c.id, 0};
    one.serials = {c.parts[0].serial};
    one.state = state;
    one.node = 1;
    one.online_bytes = c.size;
    report.regions.push_back(one);
    return report;
}

TEST(Channel, AgentThatNeverReportsLeavesTheCompositionWaitingForIt) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnlining));
    ASSERT_TRUE(rig.run_until([&] { return !rig.get(id).parts[0].waiting_for.empty(); }));
    EXPECT_EQ(rig.get(id).parts[0].waiting_for,
              "the agent of host0 to online the memory (it has not reported yet)");
}

TEST(Channel, ReportOfAForeignCompositionIsRefusedAndNothingOfItApplied) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1});
    rig.agents[0]->enabled = false;
    rig.agents[1]->enabled = false;
    rig.start_ready();
    const CompositionId mine = rig.create("host0", 1)->composition.id;
    const CompositionId foreign = rig.create("host1", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(mine, kOnlining));
    ASSERT_TRUE(rig.reaches(foreign, kOnlining));
    ObservedReport report = report_of(rig.get(mine), ObservedState::kOnline);
    report.regions.push_back(report_of(rig.get(foreign), ObservedState::kOnline).regions[0]);
    const Outcome<> refused = rig.run(rig.manager->observed(HostId("host0"), report));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, problem::kNotYourComposition);
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("host.refused"); }));
    EXPECT_EQ(rig.get(mine).state, kOnlining);
    report.regions.pop_back();
    report.regions[0].serials = {SerialNumber{1}};
    EXPECT_EQ(rig.run(rig.manager->observed(HostId("host0"), report)).error().code, problem::kInvalidRequest);
    EXPECT_EQ(rig.run(rig.manager->observed(HostId("nobody"), report)).error().code, problem::kUnknownHost);
}

TEST(Channel, CompositionTwiceInOneReportIsRefused) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    ObservedReport report = report_of(c, ObservedState::kOnline);
    report.regions.push_back(report_of(c, ObservedState::kOffline).regions[0]);
    EXPECT_EQ(rig.run(rig.manager->observed(HostId("host0"), report)).error().code, problem::kInvalidRequest);
}

TEST(Channel, AgentThatSawRevisionsOfAnotherManagerHasNotLetGo) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnlining));
    ObservedReport report = report_of(rig.get(id), ObservedState::kAbsent);
    report.revision_seen = 1ULL << 63;
    ASSERT_TRUE(rig.run(rig.manager->observed(HostId("host0"), report)));
    ASSERT_TRUE(rig.release(id));
    rig.settle();
    EXPECT_EQ(rig.get(id).state, CompositionState::kDraining);
}

TEST(Channel, WarningThatOnlyChangesItsTextIsOneEvent) {
    Rig rig;
    rig.agents[0]->enabled = false;
    rig.start_ready();
    ObservedReport report;
    report.boot_id = "boot-1";
    for (int i = 0; i < 20; ++i) {
        report.warnings = {{"auto-online", std::to_string(i)}};
        ASSERT_TRUE(rig.run(rig.manager->observed(HostId("host0"), report)));
    }
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("host.warning"); }));
    rig.settle();
    EXPECT_EQ(rig.events_of("host.warning"), 1);
    EXPECT_EQ(rig.manager->hosts().at(0).warnings.at(0).detail, "19");
}

TEST(Channel, ReportTwiceIsTheSameAsOnce) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    for (int i = 0; i < 2; ++i)
        ASSERT_TRUE(rig.run(rig.manager->observed(HostId("host0"), report_of(c, ObservedState::kOnline))));
    rig.run_until([n = 0]() mutable { return ++n > 10; });
    EXPECT_EQ(rig.get(c.id).revision, c.revision);
}

TEST(Channel, RebootedHostGoesBackToOnliningAndOnline) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    ObservedReport report = report_of(c, ObservedState::kFound);
    report.boot_id = "boot-2";
    rig.agents[0]->enabled = false;
    ASSERT_TRUE(rig.run(rig.manager->observed(HostId("host0"), report)));
    ASSERT_TRUE(rig.reaches(c.id, kOnlining));
    EXPECT_EQ(rig.get(c.id).parts[0].node, std::nullopt);
    report.regions[0].state = ObservedState::kOnline;
    ASSERT_TRUE(rig.run(rig.manager->observed(HostId("host0"), report)));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(rig.get(c.id).parts[0].boot_id, "boot-2");
    EXPECT_TRUE(rig.has_event("host.rebooted"));
}

TEST(Channel, DesiredAnswersAtOnceForAnotherRevisionAndWaitsForTheSame) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    const DesiredState first = *rig.run(rig.manager->desired(HostId("host0"), std::nullopt, Milliseconds(0)));
    EXPECT_TRUE(first.regions.empty());
    const std::uint64_t former_life = first.revision + 100;
    EXPECT_EQ(rig.run(rig.manager->desired(HostId("host0"), former_life, Milliseconds(60'000)))->revision,
              first.revision);
    EXPECT_EQ(rig.run(rig.manager->desired(HostId("host0"), first.revision, Milliseconds(1)))->revision,
              first.revision);
    std::optional<DesiredState> later;
    boost::asio::co_spawn(rig.io(),
                          rig.manager->desired(HostId("host0"), first.revision, Milliseconds(60'000)),
                          [&](std::exception_ptr, Outcome<DesiredState> state) { later = *state; });
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.run_until([&] { return later.has_value(); }));
    ASSERT_EQ(later->regions.size(), 1u);
    EXPECT_EQ(later->regions[0].id, (RegionId{id, 0}));
    EXPECT_TRUE(later->regions[0].online);
    EXPECT_GT(later->revision, first.revision);
    ASSERT_TRUE(rig.release(id));
    const DesiredState draining =
        *rig.run(rig.manager->desired(HostId("host0"), later->revision, Milliseconds(0)));
    ASSERT_EQ(draining.regions.size(), 1u);
    EXPECT_FALSE(draining.regions[0].online);
    EXPECT_TRUE(draining.regions[0].drain_deadline);
}

TEST(Channel, AgentIsToldLaterOfRegionsThatItHasLetGo) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    const HostId host("host0");
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnlining));
    ASSERT_TRUE(rig.run(rig.manager->observed(host, report_of(rig.get(id), ObservedState::kOnline))));
    ASSERT_TRUE(rig.reaches(id, kOnline));
    ASSERT_TRUE(rig.release(id));
    ASSERT_TRUE(rig.reaches(id, kDraining));
    const DesiredState draining = *rig.run(rig.manager->desired(host, std::nullopt, Milliseconds(0)));
    std::optional<DesiredState> later;
    boost::asio::co_spawn(rig.io(), rig.manager->desired(host, draining.revision, Milliseconds(60'000)),
                          [&](std::exception_ptr, Outcome<DesiredState> state) { later = *state; });
    ASSERT_TRUE(rig.run(
        rig.manager->observed(host, report_of(rig.get(id), ObservedState::kOffline, draining.revision))));
    ASSERT_TRUE(rig.reaches(id, kReleased));
    ASSERT_TRUE(rig.run_until([&] { return later.has_value(); }));
    EXPECT_TRUE(later->regions.empty());
    EXPECT_GT(later->revision, draining.revision);
}

TEST(Channel, SameIdempotencyKeyIsAnsweredTheSameAndAnotherBodyRefused) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1});
    rig.start_ready();
    const Outcome<Created> first = rig.create("host0", 1, IdempotencyKey{"key", "hash"});
    ASSERT_TRUE(first);
    ASSERT_TRUE(rig.reaches(first->composition.id, kOnline));
    const Outcome<Created> again = rig.create("host0", 1, IdempotencyKey{"key", "hash"});
    ASSERT_TRUE(again && again->replayed);
    EXPECT_EQ(again->composition, first->composition);
    EXPECT_EQ(rig.create("host0", 1, IdempotencyKey{"key", "other"}).error().code,
              problem::kIdempotencyConflict);
    rig.kill();
    rig.start_ready();
    EXPECT_EQ(rig.create("host0", 1, IdempotencyKey{"key", "hash"})->composition, first->composition);
    EXPECT_EQ(rig.manager->list({}).items.size(), 1u);
}

TEST(Channel, SameKeyTwiceAtOnceMakesOneComposition) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1});
    rig.start_ready();
    std::vector<CompositionId> ids;
    for (int i = 0; i < 2; ++i) {
        CompositionRequest request;
        request.host = HostId("host0");
        request.size = kCxlGranule;
        boost::asio::co_spawn(
            rig.io(), rig.manager->create(request, IdempotencyKey{"key", "hash"}),
            [&](std::exception_ptr, Outcome<Created> c) { ids.push_back(c->composition.id); });
    }
    ASSERT_TRUE(rig.run_until([&] { return ids.size() == 2; }));
    EXPECT_EQ(ids[0], ids[1]);
}

TEST(Channel, RefusedRequestLeavesItsKeyFree) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    EXPECT_FALSE(rig.create("host0", 9, IdempotencyKey{"key", "hash"}));
    EXPECT_TRUE(rig.create("host0", 1, IdempotencyKey{"key", "hash"}));
}

TEST(Channel, EventsAreResumedAcrossARestart) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    const std::vector<Event> before = rig.events();
    ASSERT_GE(before.size(), 5u);
    rig.kill();
    rig.start_ready();
    const std::vector<Event> after = *rig.run(rig.manager->events(before[1].id, 100, Milliseconds(0)));
    ASSERT_GE(after.size(), before.size() - 2);
    for (std::size_t i = 2; i < before.size(); ++i) EXPECT_EQ(after[i - 2], before[i]);
    for (std::size_t i = 1; i < after.size(); ++i) EXPECT_LT(after[i - 1].id, after[i].id);
    EXPECT_EQ(rig.run(rig.manager->events(before[1].id, 2, Milliseconds(0)))->size(), 2u);
}

TEST(Channel, SubscriberIsWokenByTheNextEvent) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    std::optional<std::vector<Event>> got;
    rig.run_until([n = 0]() mutable { return ++n > 20; });
    boost::asio::co_spawn(rig.io(), rig.manager->events(rig.manager->last_event(), 10, Milliseconds(60'000)),
                          [&](std::exception_ptr, Outcome<std::vector<Event>> events) { got = *events; });
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.run_until([&] { return got.has_value(); }));
    EXPECT_EQ(got->at(0).composition, id);
    EXPECT_EQ(got->at(0).state, "Pending");
}

TEST(Channel, OldEventsAreForgotten) {
    Rig rig;
    rig.config.keep_events = 50;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    for (int i = 0; i < 150; ++i) {
        const Composition c = rig.online("host0", 1);
        ASSERT_TRUE(rig.release(c.id));
        ASSERT_TRUE(rig.reaches(c.id, kReleased));
    }
    rig.stop();
    const auto contents = (*open_sqlite_store(rig.store))->load();
    EXPECT_GT(contents->first_event, 1u);
    EXPECT_LT(contents->last_event - contents->first_event, 1200u);
}

TEST(Channel, WaitEndsAtTheStateAtTheEndOrAtTheTimeout) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const CompositionId id = rig.create("host0", 1)->composition.id;
    EXPECT_EQ(rig.run(rig.manager->wait(id, kOnline, Milliseconds(10'000)))->state, kOnline);
    EXPECT_EQ(rig.run(rig.manager->wait(id, kReleased, Milliseconds(1)))->state, kOnline);
    ASSERT_TRUE(rig.release(id));
    EXPECT_EQ(rig.run(rig.manager->wait(id, kOnline, Milliseconds(10'000)))->state, kReleased);
    EXPECT_EQ(rig.run(rig.manager->wait(CompositionId("c-x"), kOnline, Milliseconds(1))).error().code,
              problem::kUnknownComposition);
}

TEST(Channel, StopEndsWhoeverWaits) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    const CompositionId id = rig.create("host0", 1)->composition.id;
    int ended = 0;
    boost::asio::co_spawn(rig.io(), rig.manager->wait(id, kReleased, Milliseconds(3'600'000)),
                          [&](std::exception_ptr, Outcome<Composition> c) { ended += c ? 0 : 1; });
    boost::asio::co_spawn(rig.io(), rig.manager->events(1'000'000, 1, Milliseconds(3'600'000)),
                          [&](std::exception_ptr, Outcome<std::vector<Event>>) { ++ended; });
    rig.run_until([n = 0]() mutable { return ++n > 20; });
    rig.stop();
    EXPECT_EQ(ended, 2);
}

TEST(Channel, ListIsPagedAndFiltered) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1, 1, 1, 1});
    rig.start_ready();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(rig.create(i % 2 == 0 ? "host0" : "host1", 1));
    CompositionQuery query;
    query.limit = 2;
    std::size_t seen = 0;
    for (;;) {
        const CompositionPage page = rig.manager->list(query);
        seen += page.items.size();
        if (!page.next) break;
        query.after = *page.next;
    }
    EXPECT_EQ(seen, 5u);
    query = CompositionQuery{};
    query.host = HostId("host1");
    EXPECT_EQ(rig.manager->list(query).items.size(), 2u);
    query.state = kReleased;
    EXPECT_TRUE(rig.manager->list(query).items.empty());
}

}  // namespace
}  // namespace memtide::fm

// Switches, devices, disks and managers that fail.
#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

TEST(Fault, SwitchThatIsDownAtTheStartIsUsedWhenItComes) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.fabric->down = true;
    rig.start_ready();
    EXPECT_EQ(rig.create("host0", 1).error().code, problem::kHostNotReachable);
    EXPECT_FALSE(rig.manager->readiness().reasons.empty());
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("switch.down", "cannot connect"); }));
    rig.fabric->down = false;
    ASSERT_TRUE(rig.run_until([&] { return rig.manager->switches()[0].up; }));
    EXPECT_EQ(rig.online("host0", 1).state, kOnline);
    EXPECT_TRUE(rig.has_event("switch.up"));
}

TEST(Fault, SwitchThatGoesAwayMidBindLosesNoComposition) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "bind" || when != FakeSwitch::When::kAfter) return std::nullopt;
        rig.fabric->down = true;
        return Error{ErrorCode::kUnavailable, "connection reset"};
    };
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(
        rig.run_until([&] { return waiting_for(rig.get(id)).find("switch switch0 to answer") == 0; }));
    EXPECT_EQ(rig.get(id).state, kBinding);
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("composition.retry"); }));
    rig.fabric->fault = nullptr;
    rig.fabric->down = false;
    EXPECT_TRUE(rig.reaches(id, kOnline));
    EXPECT_EQ(rig.fabric->calls["bind"], 1);
    EXPECT_EQ(rig.wrong(), kNone);
}

// Every command of a life fails once, before or after it had its effect, in every way a switch can fail.
class EveryCommandFails : public ::testing::TestWithParam<std::tuple<std::string, bool, ErrorCode>> {};

TEST_P(EveryCommandFails, AndTheJobIsDoneAllTheSame) {
    const auto& [victim, before, code] = GetParam();
    Rig rig;
    rig.fabric->background_polls = 1;
    rig.fabric->add_mld(2, {1, 0}, 2);
    rig.start_ready();
    int left = 2;
    rig.fabric->fault = [&, victim = victim, when_before = before, code = code](
                            std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        const bool is_before = when == FakeSwitch::When::kBefore;
        if (command != victim || is_before != when_before || left == 0) return std::nullopt;
        --left;
        return Error{code, "injected"};
    };
    const CompositionId id = rig.create("host0", 2)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnline));
    left = 2;
    ASSERT_TRUE(rig.release(id));
    ASSERT_TRUE(rig.reaches(id, kReleased));
    EXPECT_EQ(rig.wrong(), kNone);
    EXPECT_EQ(rig.fabric->vppb(0, 0).binding, fmapi::VppbBinding::kUnbound);
}

INSTANTIATE_TEST_SUITE_P(Faults, EveryCommandFails,
                         ::testing::Combine(::testing::Values("bind", "unbind", "sanitize", "status",
                                                              "virtual_switches", "set_ld_allocations",
                                                              "ld_allocations", "identify"),
                                            ::testing::Bool(),
                                            ::testing::Values(ErrorCode::kUnavailable, ErrorCode::kTimeout,
                                                              ErrorCode::kProtocol, ErrorCode::kConflict)));

TEST(Fault, BindThatIsRefusedForGoodUndoesTheCarveAndSaysWhy) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 0}, 3);
    rig.start_ready();
    rig.fabric->fault = [](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "bind" || when != FakeSwitch::When::kBefore) return std::nullopt;
        return Error{ErrorCode::kInvalidArgument, "Bind vPPB: Invalid Input (0002h)"};
    };
    const CompositionId id = rig.create("host0", 2)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kFailed));
    const Composition c = rig.get(id);
    EXPECT_EQ(c.reason->code, "bind-refused");
    EXPECT_EQ(c.undone, (std::vector<std::string>{"allocate", "reservation"}));
    EXPECT_EQ(rig.fabric->port(2).lds[1].size, 0u);
    EXPECT_EQ(rig.manager->pool().free, kCxlGranule * 4);
}

TEST(Fault, BindThatEndsWithAnErrorInTheBackgroundFails) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.fabric->ends_with["bind"] = fmapi::ReturnCode::kInternalError;
    rig.start_ready();
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kFailed));
    EXPECT_EQ(rig.get(id).reason->code, "bind-refused");
    EXPECT_EQ(rig.manager->pool().free, kCxlGranule);
}

TEST(Fault, MemoryThatCannotBeErasedIsQuarantinedUntilItCan) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.config.timing.quarantine_retry = Milliseconds(20);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->ends_with["sanitize"] = fmapi::ReturnCode::kPermanentMediaFailure;
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    EXPECT_EQ(rig.get(c.id).reason->code, "erase-failed");
    EXPECT_EQ(rig.manager->pool().quarantined, kCxlGranule);
    EXPECT_EQ(rig.create("host1", 1).error().code, problem::kExceedsFree);
    EXPECT_TRUE(rig.has_event("ld.quarantined"));
    rig.stop();
    rig.start_ready();
    EXPECT_EQ(rig.manager->pool().quarantined, kCxlGranule) << "also after a restart";
    rig.fabric->ends_with.clear();
    ASSERT_TRUE(rig.run_until([&] { return rig.manager->pool().free == kCxlGranule; }));
    EXPECT_EQ(rig.online("host1", 1).state, kOnline);
    EXPECT_EQ(rig.wrong(), kNone);
}

// Writes to memory that is free, as a host of another manager would.
void scribble(Rig& rig) { rig.fabric->port(2).lds[0].dirty = true; }

TEST(Fault, WhatWasErasedBeforeARestartIsErasedAgainBeforeAHostGetsIt) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.released(rig.online("host0", 1).id);
    rig.stop();
    scribble(rig);
    rig.start_ready();
    EXPECT_EQ(rig.online("host1", 1).state, kOnline);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Fault, WhatWasErasedOverAFormerConnectionIsErasedAgain) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.config.timing.switch_poll = Milliseconds(60'000);
    rig.start_ready();
    rig.released(rig.online("host0", 1).id);
    // The switch was restarted, and nobody has looked at it since.
    scribble(rig);
    rig.fabric->drop_connection();
    EXPECT_EQ(rig.online("host1", 1).state, kOnline);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Fault, WhatWasErasedAndWatchedSinceIsNotErasedTwice) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.released(rig.online("host0", 1).id);
    const int erased = rig.fabric->calls["sanitize"];
    EXPECT_EQ(rig.online("host1", 1).state, kOnline);
    EXPECT_EQ(rig.fabric->calls["sanitize"], erased);
}

TEST(Fault, MemoryThatIsMissedOnceDoesNotFailTheComposition) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.config.timing.gone_after = Milliseconds(300);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    const fmapi::Vppb bound = std::exchange(rig.fabric->vppb(0, 0), fmapi::Vppb{});
    ASSERT_TRUE(rig.run_until([&] { return !waiting_for(rig.get(c.id)).empty(); }));
    rig.fabric->vppb(0, 0) = bound;
    ASSERT_TRUE(rig.run_until([&] { return waiting_for(rig.get(c.id)).empty(); }));
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    EXPECT_EQ(rig.get(c.id).revision, c.revision);
}

TEST(Fault, DeviceThatVanishesUnderAnOnlineNodeFailsTheComposition) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->vppb(0, 0) = fmapi::Vppb{};
    rig.fabric->port(2).lds[0].online = false;
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    EXPECT_EQ(rig.get(c.id).reason->code, "device-vanished");
    EXPECT_EQ(rig.online("host1", 1).state, kOnline);
    EXPECT_EQ(rig.wrong(), kNone) << "it must have been erased before the other host got it";
}

TEST(Fault, DeviceThatIsPulledFailsTheComposition) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    EXPECT_EQ(rig.get(c.id).reason->code, "device-vanished");
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("device.removed"); }));
    EXPECT_EQ(rig.manager->pool().capacity, Bytes{});
}

TEST(Fault, BindingsThatNoCompositionExplainsAreAdopted) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1});
    rig.fabric->vppb(0, 2) = fmapi::Vppb{fmapi::VppbBinding::kBoundLd, 2, 1};
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return !rig.manager->list({}).items.empty(); }));
    const Composition c = rig.manager->list({}).items[0];
    EXPECT_TRUE(c.adopted);
    EXPECT_EQ(c.host, HostId("host0"));
    EXPECT_EQ(c.parts[0].where.vppb, 2);
    EXPECT_EQ(c.labels.at("adopted"), "true");
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.manager->list({}).items.size(), 1u);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Fault, FullDiskRefusesTheRequestAndTheViewStaysBehindTheDisk) {
    Rig rig;
    rig.store.limit = Bytes{48 * 4096};
    rig.fabric->add_mld(2, {1, 1, 1, 1, 1, 1, 1, 1});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    std::optional<Problem> refusal;
    // Four of these do not fit, whatever else is written.
    for (int i = 0; i < 4 && !refusal; ++i) {
        CompositionRequest request;
        request.host = HostId("host0");
        request.size = kCxlGranule;
        request.labels["note"] = std::string(60'000, 'x');
        const Outcome<Created> created = rig.run(rig.manager->create(request, std::nullopt));
        if (!created) refusal = created.error();
    }
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, problem::kStorageFull) << refusal->detail;
    CompositionQuery all;
    all.limit = 5000;
    const std::vector<Composition> seen = rig.manager->list(all).items;
    rig.kill();
    const auto store = open_sqlite_store({rig.store.path, std::nullopt});
    ASSERT_TRUE(store);
    const auto contents = (*store)->load();
    ASSERT_EQ(contents->compositions.size(), seen.size());
    for (std::size_t i = 0; i < seen.size(); ++i)
        EXPECT_GE(contents->compositions[i].revision, seen[i].revision) << "shown before it was on the disk";
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Fault, RestartedManagerGoesOnFromTheJournalAndTheHardware) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1, 1});
    rig.start_ready();
    const Composition online = rig.online("host0", 1);
    rig.agents[1]->enabled = false;
    const CompositionId onlining = rig.create("host1", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(onlining, kOnlining));
    const std::uint64_t last_event = rig.manager->last_event();
    const std::uint64_t revision = rig.manager->hosts()[0].revision;
    rig.kill();
    rig.agents[1]->enabled = true;
    rig.start_ready();
    EXPECT_EQ(rig.get(online.id).state, kOnline);
    EXPECT_GE(rig.manager->last_event(), last_event);
    EXPECT_EQ(rig.manager->hosts()[0].revision, revision);
    ASSERT_TRUE(rig.reaches(onlining, kOnline));
    EXPECT_EQ(rig.fabric->calls["bind"], 2);
    EXPECT_EQ(rig.manager->list({}).items.size(), 2u) << "its own bindings are not adopted";
    ASSERT_TRUE(rig.release(online.id));
    ASSERT_TRUE(rig.reaches(online.id, kReleased));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Fault, UnfinishedCompositionOfAHostThatLeftTheConfigurationIsAClearError) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.online("host0", 1);
    rig.stop();
    rig.config.hosts.erase(rig.config.hosts.begin());
    try {
        rig.start();
        FAIL() << "it started";
    } catch (const std::runtime_error& e) {
        EXPECT_NE(std::string(e.what()).find("host0"), std::string::npos);
    }
}

// The database is good, but could not be recovered if it were not.
TEST(Fault, ADamagedSnapshotIsToldUntilAFreshOneIsThere) {
    Rig rig;
    rig.store.check_snapshot_after = Milliseconds(0);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    const std::filesystem::path snapshot = rig.store.path + ".snapshot";
    ASSERT_TRUE(rig.run_until([&] { return std::filesystem::exists(snapshot); }));
    rig.stop();
    std::filesystem::resize_file(snapshot, 5000);
    const std::filesystem::path in_the_way = snapshot.string() + ".new";  // no fresh one can be written
    std::filesystem::create_directories(in_the_way / "x");
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("store.damaged", snapshot.string()); }));
    EXPECT_TRUE(rig.manager->readiness().ready);
    ASSERT_EQ(rig.manager->readiness().reasons.size(), 1u);
    EXPECT_NE(rig.manager->readiness().reasons[0].find("the state could not be recovered"),
              std::string::npos);
    EXPECT_NE(rig.metrics().render().find("memtide_fm_state_damages_total 1\n"), std::string::npos);
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    rig.stop();
    std::filesystem::remove_all(in_the_way);
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("store.mended"); }));
    EXPECT_TRUE(rig.manager->readiness().reasons.empty());
}

}  // namespace
}  // namespace memtide::fm

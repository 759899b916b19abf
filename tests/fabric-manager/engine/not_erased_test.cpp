// Memory that a host finds not erased although its device has said that it was.
#include <algorithm>

#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>

#include "fabric-manager/engine/desired.h"
#include "fabric-manager/engine/next_step.h"
#include "fabric-manager/model/inventory.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

FakeLd* ld_with(FakeSwitch& fabric, SerialNumber serial) {
    for (FakePort& port : fabric.ports)
        for (FakeLd& ld : port.lds)
            if (ld.serial == serial.value) return &ld;
    return nullptr;
}

// Leaves bytes of another host in what the next composition of that size would get.
SerialNumber soil(Rig& rig, const std::string& host, std::uint64_t units, PlacementPolicy policy = {}) {
    rig.fabric->sanitize_lies = true;
    const CompositionRequest request{HostId(host), kCxlGranule * units, policy, std::nullopt,
                                     {},           std::nullopt};
    const auto plan = rig.manager->plan(request);
    const SerialNumber serial = plan->composition.parts.at(0).serial;
    ld_with(*rig.fabric, serial)->stale = true;
    return serial;
}

class NotErased : public testing::Test {
  protected:
    void start(int devices) {
        rig.config.timing.quarantine_retry = Milliseconds(20);
        for (int i = 0; i < devices; ++i) rig.fabric->add_mld(static_cast<std::uint8_t>(2 + i), {1});
        rig.start_ready();
    }
    Composition reach(const CompositionId& id, CompositionState state) {
        EXPECT_TRUE(rig.reaches(id, state)) << to_string(rig.get(id).state);
        return rig.get(id);
    }
    static const Part& part_of(const Composition& c, SerialNumber serial) {
        return *std::ranges::find(c.parts, serial, &Part::serial);
    }
    Bytes quarantined() { return rig.manager->pool().quarantined; }
    Rig rig;
};

TEST_F(NotErased, ErasedMemoryIsVerifiedByItsHost) {
    start(1);
    const Composition c = rig.online("host0", 1);
    EXPECT_EQ(c.parts[0].verified_pages, 256U);
    rig.released(c.id);
    EXPECT_EQ(rig.online("host1", 1).parts[0].verified_pages, 256U);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, MemoryNeverGoesOnlineAndOtherMemoryTakesItsPlace) {
    start(2);
    const SerialNumber dirty = soil(rig, "host0", 1);
    const Composition c = rig.online("host0", 1);
    ASSERT_EQ(c.parts.size(), 2U);
    EXPECT_NE(c.parts[1].serial, dirty);
    EXPECT_EQ(c.parts[1].state, kOnline);
    EXPECT_EQ(c.parts[1].verified_pages, 256U);
    ASSERT_TRUE(rig.run_until([&] { return is_end(part_of(rig.get(c.id), dirty).state); }));
    EXPECT_EQ(part_of(rig.get(c.id), dirty).state, kFailed);
    EXPECT_EQ(part_of(rig.get(c.id), dirty).reason->code, "not-erased");
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    EXPECT_FALSE(rig.get(c.id).reason.has_value());
    EXPECT_EQ(quarantined(), kCxlGranule);
    EXPECT_TRUE(rig.has_event("ld.quarantined", "not-erased"));
    EXPECT_TRUE(rig.has_event("composition.reprovided"));
    EXPECT_NE(rig.metrics().render().find("memtide_fm_lds_not_erased_total 1"), std::string::npos);
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, WithoutOtherMemoryTheCompositionFailsWithThatReason) {
    start(1);
    soil(rig, "host0", 1);
    const Composition c = reach(rig.create("host0", 1)->composition.id, kFailed);
    EXPECT_EQ(c.reason->code, "not-erased");
    EXPECT_NE(c.reason->detail.find("nothing can take its place"), std::string::npos) << c.reason->detail;
    EXPECT_EQ(quarantined(), kCxlGranule);
    EXPECT_EQ(rig.create("host1", 1).error().code, problem::kExceedsFree);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, QuarantineOutlastsWhatTheDeviceSaysAndRestarts) {
    start(1);
    const SerialNumber dirty = soil(rig, "host0", 1);
    reach(rig.create("host0", 1)->composition.id, kFailed);
    rig.fabric->sanitize_lies = false;
    const int sanitized = rig.fabric->calls["sanitize"];
    for (int looks = 0; looks < 2; ++looks) {
        rig.fabric->drop_connection();  // as a power cycle does
        rig.settle();
        EXPECT_EQ(quarantined(), kCxlGranule);
        EXPECT_EQ(rig.fabric->calls["sanitize"], sanitized) << "its word is worth nothing: it is not asked";
        rig.stop();
        rig.start_ready();
    }
    ASSERT_TRUE(rig.run(rig.manager->lift_quarantine(dirty)));
    EXPECT_EQ(quarantined(), Bytes{});
    EXPECT_TRUE(rig.has_event("ld.recovered", "forced"));
    EXPECT_EQ(rig.online("host1", 1).parts[0].verified_pages, 256U);
    EXPECT_GT(rig.fabric->calls["sanitize"], sanitized) << "erased before it is bound";
    rig.stop();
    rig.start_ready();
    EXPECT_EQ(quarantined(), Bytes{}) << "lifted for good";
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, LiftedTooEarlyItIsFoundAgain) {
    start(1);
    const SerialNumber dirty = soil(rig, "host0", 1);
    reach(rig.create("host0", 1)->composition.id, kFailed);
    ASSERT_TRUE(rig.run(rig.manager->lift_quarantine(dirty)));
    reach(rig.create("host1", 1)->composition.id, kFailed);
    EXPECT_EQ(quarantined(), kCxlGranule);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, OfManyThatLiftItAtOnceOneDoes) {
    start(1);
    const SerialNumber dirty = soil(rig, "host0", 1);
    reach(rig.create("host0", 1)->composition.id, kFailed);
    std::vector<std::string> answers;
    const auto lift = [](Manager* manager, SerialNumber serial,
                         std::vector<std::string>* told) -> boost::asio::awaitable<void> {
        const Outcome<> lifted = co_await manager->lift_quarantine(serial);
        told->push_back(lifted ? "lifted" : lifted.error().code);
    };
    constexpr int kClients = 8;
    for (int i = 0; i < kClients; ++i)
        boost::asio::co_spawn(rig.io(), lift(rig.manager.get(), dirty, &answers), boost::asio::detached);
    ASSERT_TRUE(rig.run_until([&] { return answers.size() == kClients; }));
    EXPECT_EQ(std::ranges::count(answers, "lifted"), 1);
    EXPECT_EQ(std::ranges::count(answers, problem::kNotQuarantined), kClients - 1);
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("ld.recovered"); }));
    rig.run_until([n = 0]() mutable { return ++n > 20; });
    EXPECT_EQ(rig.events_of("ld.recovered"), 1);
}

TEST_F(NotErased, OnlyWhatIsInQuarantineCanBeLifted) {
    start(1);
    const Outcome<> lifted = rig.run(rig.manager->lift_quarantine(SerialNumber{1}));
    ASSERT_FALSE(lifted);
    EXPECT_EQ(lifted.error().code, problem::kNotQuarantined);
}

TEST_F(NotErased, InterleavedRegionGoesAsAWholeAndOnlyTheDirtyLdIsQuarantined) {
    start(4);
    const SerialNumber dirty = soil(rig, "host0", 2, ways(2));
    const Composition c = rig.online("host0", 2, ways(2));
    ASSERT_EQ(c.parts.size(), 4U);
    ASSERT_TRUE(rig.run_until([&] {
        const Composition now = rig.get(c.id);
        return std::ranges::count_if(now.parts, [](const Part& part) { return is_end(part.state); }) == 2;
    }));
    for (const Part& part : rig.get(c.id).parts)
        EXPECT_EQ(part.state, part.serial == dirty ? kFailed : part.number < 2 ? kReleased : kOnline);
    EXPECT_EQ(quarantined(), kCxlGranule);
    EXPECT_EQ(lasting_size(rig.get(c.id)), kCxlGranule * 2);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, WhatIsAddedToAnOnlineCompositionIsReplacedToo) {
    start(3);
    const Composition c = rig.online("host0", 1);
    soil(rig, "host0", 1);
    ASSERT_TRUE(rig.resize(c.id, 2));
    ASSERT_TRUE(
        rig.run_until([&] { return quarantined() == kCxlGranule && rig.get(c.id).state == kOnline; }));
    EXPECT_EQ(rig.get(c.id).size, kCxlGranule * 2);
    EXPECT_EQ(lasting_size(rig.get(c.id)), kCxlGranule * 2);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, GrowingWithNothingButDirtyMemoryLeavesWhatWasThere) {
    start(2);
    const Composition c = rig.online("host0", 1);
    soil(rig, "host0", 1);
    ASSERT_TRUE(rig.resize(c.id, 2));
    ASSERT_TRUE(
        rig.run_until([&] { return quarantined() == kCxlGranule && rig.get(c.id).state == kOnline; }));
    EXPECT_EQ(rig.get(c.id).size, kCxlGranule);
    EXPECT_TRUE(rig.has_event("composition.resize-failed", "not-erased"));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, AHostThatFindsEverythingDirtyDoesNotEmptyThePool) {
    start(6);
    rig.fabric->sanitize_lies = true;
    for (FakePort& port : rig.fabric->ports)
        for (FakeLd& ld : port.lds) ld.stale = true;
    const Composition c = reach(rig.create("host0", 1)->composition.id, kFailed);
    EXPECT_EQ(c.parts.size(), 3U);
    EXPECT_EQ(quarantined(), kCxlGranule * 3);
}

TEST_F(NotErased, AgentThatDoesNotKnowOfItBringsItOnlineUnverified) {
    rig.agents[0]->knows_read_back = false;
    start(1);
    soil(rig, "host0", 1);
    const Composition c = rig.online("host0", 1);
    EXPECT_EQ(c.parts[0].verified_pages, 0U);
    EXPECT_EQ(quarantined(), Bytes{});
}

TEST_F(NotErased, MediaWhoseEraseLeavesAnythingAreNotVerified) {
    rig.config.verify_erased.pattern = ErasedPattern::kAny;
    start(1);
    soil(rig, "host0", 1);
    EXPECT_EQ(rig.online("host0", 1).parts[0].verified_pages, 0U);
}

TEST_F(NotErased, HostThatRestartedMeanwhileProvesNothing) {
    start(2);
    rig.report(*rig.agents[0]);  // so that its boot is known
    rig.agents[0]->reboots_at_read_back = "boot-2";
    soil(rig, "host0", 1);
    const Composition c = rig.online("host0", 1);
    EXPECT_EQ(c.parts[0].reason->code, "not-verified");
    EXPECT_EQ(quarantined(), Bytes{});
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, ManagerThatRestartedMeanwhileAccusesNobodyAndFindsOutAtTheNextBind) {
    rig.agents[0]->enabled = false;
    start(1);
    rig.report(*rig.agents[0]);
    const SerialNumber dirty = soil(rig, "host0", 1);
    const CompositionId id = rig.create("host0", 1)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnlining));
    rig.kill();
    rig.agents[0]->enabled = true;
    rig.start_ready();
    EXPECT_EQ(reach(id, kFailed).reason->code, "not-verified");
    EXPECT_EQ(quarantined(), Bytes{});
    EXPECT_EQ(reach(rig.create("host0", 1)->composition.id, kFailed).reason->code, "not-erased");
    EXPECT_EQ(quarantined(), kCxlGranule);
    EXPECT_TRUE(ld_with(*rig.fabric, dirty)->stale);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, MemoryThatComesBackAfterARebootIsNotVerifiedAgain) {
    start(1);
    const Composition c = rig.online("host0", 1);
    FakeLd& ld = *ld_with(*rig.fabric, c.parts[0].serial);
    ld.stale = true;
    ld.used = ld.online = false;
    rig.agents[0]->boot_id = "boot-2";
    rig.report(*rig.agents[0]);
    ASSERT_TRUE(rig.run_until([&] { return rig.get(c.id).parts[0].boot_id == "boot-2"; }));
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    EXPECT_EQ(rig.get(c.id).parts[0].verified_pages, 256U) << "it was when it arrived";
    EXPECT_EQ(quarantined(), Bytes{});
}

TEST_F(NotErased, DirtyMemoryThatCannotBeErasedEitherDoesNotFailItsReplacement) {
    start(2);
    rig.config.erase_attempts = 1;
    const SerialNumber dirty = soil(rig, "host0", 1);
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "sanitize" || when != FakeSwitch::When::kBefore || rig.fabric->calls["unbind"] == 0)
            return std::nullopt;
        return Error{ErrorCode::kInternal, "Hardware error: media failure"};
    };
    const Composition c = rig.create("host0", 1)->composition;
    ASSERT_TRUE(rig.run_until([&] { return is_end(part_of(rig.get(c.id), dirty).state); }));
    rig.fabric->fault = {};
    reach(c.id, kOnline);
    EXPECT_EQ(part_of(rig.get(c.id), dirty).reason->code, "not-erased");
    EXPECT_EQ(quarantined(), kCxlGranule);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(NotErased, ReportAboutAnLdOfAnotherRegionIsRefused) {
    start(1);
    rig.agents[0]->enabled = false;
    const Composition c = rig.create("host0", 1)->composition;
    ASSERT_TRUE(rig.reaches(c.id, kOnlining));
    ObservedReport report{"1.0", "boot-1", 0, {}, {}, {}, {}};
    ObservedRegion& region = report.regions.emplace_back();
    region.id = {c.id, 0};
    region.serials = {rig.get(c.id).parts[0].serial};
    region.not_erased = {SerialNumber{42}};
    EXPECT_FALSE(rig.run(rig.manager->observed(HostId("host0"), report)));
    EXPECT_EQ(quarantined(), Bytes{});
}

// --- The pure parts ---

TEST(DesiredRegions, WhatWasFoundBoundOrOnlineOnceIsNotUnused) {
    Composition c;
    c.parts.resize(2);
    c.parts[1].number = 1;
    EXPECT_TRUE(is_unused(c, 0));
    c.parts[1].boot_id = "boot-1";
    EXPECT_FALSE(is_unused(c, 0)) << "interleaved with one that was";
    c.parts[1].region = 1;
    EXPECT_TRUE(is_unused(c, 0));
    EXPECT_FALSE(is_unused(c, 1));
    c.adopted = true;
    EXPECT_FALSE(is_unused(c, 0));
}

TEST(NotErasedStep, ComesBeforeEverythingElseOfAPartThatIsComingUp) {
    Part part;
    part.serial = SerialNumber{7};
    AgentView agent;
    agent.reported = true;
    agent.region = ObservedRegion{};
    agent.region->state = ObservedState::kFailed;
    agent.region->not_erased = {SerialNumber{7}};
    SwitchView fabric;
    fabric.known = true;
    for (const CompositionState state : {kOnlining, kDraining}) {
        part.state = state;
        for (const bool released : {false, true}) {
            part.release_requested = released;
            EXPECT_EQ(next_step({HostId("host0")}, part, fabric, agent).kind, ActionKind::kNotErased);
            // What takes its place is looked for at once.
            EXPECT_EQ(next_step({HostId("host0")}, part, SwitchView{}, agent).kind, ActionKind::kAwaitSwitch);
        }
        part.boot_id = "boot-1";
        EXPECT_NE(next_step({HostId("host0")}, part, fabric, agent).kind, ActionKind::kNotErased)
            << "the host may have written it itself";
        part.boot_id.clear();
        part.reason = Reason{"not-erased", ""};
        EXPECT_NE(next_step({HostId("host0")}, part, fabric, agent).kind, ActionKind::kNotErased)
            << "done already";
        part.reason.reset();
    }
}

}  // namespace
}  // namespace memtide::fm

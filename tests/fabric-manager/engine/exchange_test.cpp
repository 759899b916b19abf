// Shrinks for which a smaller part comes in exchange for a larger one.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
using NewMemory = FakeAgent::NewMemory;

class Exchanges : public ::testing::Test {
  protected:
    Exchanges() { rig.quick(); }
    // One LD of 4 units that host0 has, and another device with `spare` units.
    void begin(std::uint64_t spare = 2, PlacementPolicy policy = {}) {
        rig.fabric->add_mld(2, {4});
        rig.fabric->add_mld(3, {0, 0, 0, 0}, spare);
        rig.start_ready();
        id = rig.online("host0", 4, policy).id;
    }
    // An LD of 4 units and one of 1 that host0 has, and then another device with `spare` units.
    void begin_with_two_parts(std::uint64_t spare) {
        rig.fabric->add_mld(2, {4});
        rig.fabric->add_mld(4, {1});
        rig.start_ready();
        id = rig.online("host0", 4).id;
        ASSERT_TRUE(resize(5));
        ASSERT_TRUE(is_online_with(5));
        rig.fabric->add_mld(3, {0, 0, 0, 0}, spare);
        ASSERT_TRUE(rig.run_until([&] { return rig.manager->pool().free == kCxlGranule * spare; }));
    }
    void restart() {
        rig.kill();
        rig.start_ready();
    }
    Outcome<Composition> resize(std::uint64_t units) { return rig.resize(id, units); }
    Composition now() { return rig.get(id); }
    bool is_online_with(std::uint64_t units) {
        return rig.run_until([&] {
            return now().state == kOnline && held_size(now()) == kCxlGranule * units &&
                   now().size == kCxlGranule * units;
        });
    }
    bool comes_as_far_as(CompositionState state) {
        return rig.run_until([&] { return now().parts.size() == 2 && now().parts[1].state == state; });
    }
    // Shrinks to 2 units, and what comes is bound and not onlined.
    bool waits_for_what_comes() {
        agent().new_memory = NewMemory::kIgnored;
        return resize(2) && comes_as_far_as(kOnlining);
    }
    // The first part was never touched, and the exchange says why it was undone.
    void expect_undone(const std::string& why) {
        EXPECT_TRUE(is_online_with(4));
        EXPECT_EQ(now().parts[0].state, kOnline);
        EXPECT_FALSE(now().exchange);
        EXPECT_TRUE(rig.has_event("composition.resize-failed", why));
        const std::vector<Step> steps = now().steps;
        const auto step = std::ranges::find(steps, "exchange", &Step::name);
        ASSERT_TRUE(step != steps.end());
        EXPECT_TRUE(step->ended && step->detail.starts_with("undone: ")) << step->detail;
        rig.released(id);
        EXPECT_EQ(rig.manager->pool().free, rig.manager->pool().capacity);
        EXPECT_EQ(rig.wrong(), kNone);
    }
    void refuse_binds() {
        rig.fabric->fault = [](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
            if (command != "bind" || when != FakeSwitch::When::kBefore) return std::nullopt;
            return Error{ErrorCode::kInvalidArgument, "no"};
        };
    }
    FakeAgent& agent() { return *rig.agents[0]; }

    Rig rig;
    CompositionId id;
};

TEST_F(Exchanges, WhatGoesStaysOnlineUntilWhatComesIs) {
    agent().new_memory = NewMemory::kOnlined;
    begin();
    ASSERT_TRUE(waits_for_what_comes());
    EXPECT_EQ(now().state, kResizing);
    EXPECT_EQ(now().parts[0].state, kOnline);
    EXPECT_FALSE(now().parts[0].release_requested);
    ASSERT_TRUE(now().exchange);
    EXPECT_EQ(now().exchange->leaving, std::vector<std::uint32_t>{0});
    EXPECT_EQ(now().exchange->coming, std::vector<std::uint32_t>{1});
    agent().new_memory = NewMemory::kOnlined;
    rig.report(agent());
    EXPECT_TRUE(is_online_with(2));
    EXPECT_FALSE(now().exchange);
    EXPECT_FALSE(rig.has_event("composition.resize-failed"));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(Exchanges, ItIsResizingFromItsFirstEntryToItsLast) {
    begin();
    ASSERT_TRUE(resize(2));
    ASSERT_TRUE(is_online_with(2));
    std::vector<std::string> states;
    for (const Event& event : rig.events())
        if (event.type == "composition.state") states.push_back(event.state);
    EXPECT_EQ(states,
              (std::vector<std::string>{"Pending", "Binding", "Onlining", "Online", "Resizing", "Online"}));
}

TEST_F(Exchanges, BindThatIsRefusedUndoesIt) {
    begin();
    refuse_binds();
    ASSERT_TRUE(resize(2));
    expect_undone("bind-refused");
    EXPECT_EQ(rig.fabric->calls["bind"], 1);
}

TEST_F(Exchanges, HostThatRefusesUndoesIt) {
    begin();
    agent().new_memory = NewMemory::kRefused;
    ASSERT_TRUE(resize(2));
    expect_undone("no window has room");
    EXPECT_EQ(rig.fabric->calls["bind"], 2);
}

TEST_F(Exchanges, HostThatDoesNothingUndoesItAtTheDeadline) {
    rig.config.timing.exchange_deadline = Milliseconds(100);
    begin();
    agent().new_memory = NewMemory::kIgnored;
    ASSERT_TRUE(resize(2));
    expect_undone("exchange-overdue");
}

TEST_F(Exchanges, DeadlineCountsAfterARestartToo) {
    rig.config.timing.exchange_deadline = Milliseconds(2000);
    begin();
    ASSERT_TRUE(waits_for_what_comes());
    restart();
    EXPECT_EQ(now().parts[0].state, kOnline);
    expect_undone("exchange-overdue");
}

TEST_F(Exchanges, LossOfWhatComesUndoesIt) {
    begin();
    ASSERT_TRUE(waits_for_what_comes());
    rig.fabric->remove_device(now().parts[1].port);
    ASSERT_TRUE(is_online_with(4));
    EXPECT_TRUE(rig.has_event("composition.resize-failed", "device-vanished"));
    EXPECT_EQ(now().parts[0].state, kOnline);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(Exchanges, LossOfWhatGoesLeavesWhatComes) {
    begin();
    ASSERT_TRUE(waits_for_what_comes());
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.run_until([&] { return now().parts[0].state == kFailed; }));
    EXPECT_EQ(now().state, kResizing);
    EXPECT_FALSE(now().exchange);
    agent().new_memory = NewMemory::kOnlined;
    rig.report(agent());
    EXPECT_TRUE(is_online_with(2));
    rig.released(id);
}

TEST_F(Exchanges, LossOfAllFailsItAndNothingStaysDegraded) {
    begin();
    ASSERT_TRUE(waits_for_what_comes());
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.run_until([&] { return now().parts[0].state == kFailed; }));
    rig.fabric->remove_device(3);
    ASSERT_TRUE(rig.reaches(id, kFailed));
    EXPECT_EQ(now().reason->code, "device-vanished");
}

TEST_F(Exchanges, LossOfAllIsReplacedWhereThePolicySaysSo) {
    PlacementPolicy policy;
    policy.reprovide = true;
    begin(2, policy);
    ASSERT_TRUE(waits_for_what_comes());
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.run_until([&] { return now().parts[0].state == kFailed; }));
    rig.fabric->remove_device(3);
    ASSERT_TRUE(rig.reaches(id, kDegraded));
    EXPECT_EQ(now().size, kCxlGranule * 2);
    agent().new_memory = NewMemory::kOnlined;
    rig.fabric->add_mld(4, {2});
    EXPECT_TRUE(is_online_with(2));
}

TEST_F(Exchanges, LossOfWhatStaysKeepsWhatWasToGo) {
    begin_with_two_parts(2);
    agent().new_memory = NewMemory::kIgnored;
    ASSERT_TRUE(resize(3));
    ASSERT_TRUE(rig.run_until([&] { return now().parts.back().state == kOnlining; }));
    rig.fabric->remove_device(4);
    ASSERT_TRUE(rig.reaches(id, kDegraded));
    EXPECT_EQ(now().size, kCxlGranule * 5);
    EXPECT_EQ(lasting_size(now()), kCxlGranule * 4);
    EXPECT_TRUE(rig.has_event("composition.part-lost", "device-vanished"));
    EXPECT_TRUE(rig.has_event("composition.resize-failed", "device-vanished"));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(Exchanges, ReleaseInTheMiddleGivesBothBack) {
    for (const bool force : {false, true}) {
        Rig one;
        one.fabric->add_mld(2, {4, 0}, 2);
        one.start_ready();
        const CompositionId c = one.online("host0", 4).id;
        one.agents[0]->new_memory = NewMemory::kIgnored;
        ASSERT_TRUE(one.resize(c, 2));
        ASSERT_TRUE(one.run_until([&] { return one.get(c).parts.back().state == kOnlining; }));
        ASSERT_TRUE(one.release(c, force));
        EXPECT_FALSE(one.get(c).exchange);
        ASSERT_TRUE(one.reaches(c, kReleased));
        EXPECT_EQ(one.manager->pool().free, one.manager->pool().capacity);
        EXPECT_FALSE(one.has_event("composition.resize-failed"));
        EXPECT_EQ(one.wrong(), kNone);
    }
}

TEST_F(Exchanges, OtherSizesMeanwhileAreRefusedAndTheOldOneUndoesIt) {
    begin(4);
    ASSERT_TRUE(waits_for_what_comes());
    EXPECT_EQ(resize(1).error().code, problem::kExchangeUnderWay);
    EXPECT_EQ(resize(6).error().code, problem::kExchangeUnderWay);
    EXPECT_TRUE(resize(2));  // what it does already
    ASSERT_TRUE(now().exchange);
    const Outcome<Composition> undone = resize(4);
    ASSERT_TRUE(undone);
    EXPECT_EQ(undone->size, kCxlGranule * 4);
    expect_undone("asked-back");
}

TEST_F(Exchanges, ASizeThatIsWrongAtAnyTimeIsWrongMeanwhileToo) {
    begin(4);
    const auto refusal = [&](Bytes size) {
        CompositionChangeRequest request;
        request.size = size;
        const Outcome<Composition> changed = rig.run(rig.manager->change(id, std::move(request)));
        return changed ? std::string("accepted") : changed.error().code;
    };
    const auto expect_refusals = [&] {
        EXPECT_EQ(refusal(Bytes{0}), problem::kSizeZero);
        EXPECT_EQ(refusal(mebibytes(100)), problem::kSizeNotMultiple);
        EXPECT_EQ(refusal(kCxlGranule * 5 + Bytes{1}), problem::kSizeNotMultiple);
        EXPECT_EQ(refusal(kCxlGranule * 1000), problem::kExceedsCapacity);
    };
    expect_refusals();
    ASSERT_TRUE(waits_for_what_comes());
    expect_refusals();
    ASSERT_TRUE(now().exchange);
    rig.agents[0]->new_memory = NewMemory::kOnlined;
    rig.released(id);
    EXPECT_EQ(refusal(Bytes{0}), problem::kSizeZero);
    EXPECT_EQ(refusal(mebibytes(100)), problem::kSizeNotMultiple);
    EXPECT_EQ(refusal(kCxlGranule), problem::kCompositionEnded);
}

TEST_F(Exchanges, HostThatRebootsInTheMiddleHasItGoOnOrUndone) {
    begin();
    ASSERT_TRUE(waits_for_what_comes());
    agent().boot_id = "boot-2";
    for (FakePort& port : rig.fabric->ports)
        for (FakeLd& ld : port.lds) ld.online = false;
    rig.report(agent());
    rig.run_until([n = 0]() mutable { return ++n > 50; });
    EXPECT_EQ(now().state, kResizing);
    EXPECT_FALSE(now().parts[0].release_requested);
    agent().new_memory = NewMemory::kOnlined;
    rig.report(agent());
    EXPECT_TRUE(is_online_with(2));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(Exchanges, SwitchThatIsOffForAWhileChangesNothing) {
    begin();
    rig.fabric->down = true;
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("switch.down"); }));
    const Outcome<Composition> refused = resize(2);
    ASSERT_FALSE(refused);  // nothing is placed behind a switch that does not answer
    rig.fabric->down = false;
    ASSERT_TRUE(rig.run_until([&] { return resize(2).has_value(); }));
    rig.fabric->down = true;
    rig.run_until([n = 0]() mutable { return ++n > 50; });
    EXPECT_EQ(now().parts[0].state == kOnline, now().exchange.has_value());
    rig.fabric->down = false;
    EXPECT_TRUE(is_online_with(2));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(Exchanges, QuotaCountsBothWhileBothAreThere) {
    const std::string blue = "blue";
    rig.config.tenants[blue].bytes = kCxlGranule * 5;
    rig.fabric->add_mld(2, {4, 0, 0}, 4);
    rig.start_ready();
    CompositionRequest request;
    request.host = HostId("host0");
    request.size = kCxlGranule * 4;
    request.tenant = blue;
    id = rig.run(rig.manager->create(request, std::nullopt))->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnline));
    const Outcome<Composition> refused = resize(2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, problem::kQuotaExceeded);
    EXPECT_NE(refused.error().detail.find("Sizes that need none"), std::string::npos);
    EXPECT_FALSE(now().exchange);
    agent().new_memory = NewMemory::kIgnored;
    ASSERT_TRUE(resize(1));
    EXPECT_EQ(rig.manager->tenants()[0].used.bytes, kCxlGranule * 5);
    agent().new_memory = NewMemory::kOnlined;
    ASSERT_TRUE(comes_as_far_as(kOnlining));
    rig.report(agent());
    ASSERT_TRUE(is_online_with(1));
    EXPECT_EQ(rig.manager->tenants()[0].used.bytes, kCxlGranule);
}

TEST_F(Exchanges, ShrinkOfAGrowthGivesBackWhatIsNotOnlineYet) {
    begin(4);
    agent().new_memory = NewMemory::kIgnored;
    ASSERT_TRUE(resize(8));
    ASSERT_TRUE(comes_as_far_as(kOnlining));
    ASSERT_TRUE(resize(4));
    EXPECT_FALSE(now().exchange);
    EXPECT_FALSE(now().parts[0].release_requested);
    EXPECT_TRUE(is_online_with(4));
    EXPECT_EQ(now().parts[0].state, kOnline);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(Exchanges, ShrinkOfAGrowthKeepsWhatIsOnlineUntilTheGrowthIs) {
    begin_with_two_parts(4);
    agent().new_memory = NewMemory::kIgnored;
    ASSERT_TRUE(resize(9));
    ASSERT_TRUE(rig.run_until([&] { return now().parts.back().state == kOnlining; }));
    ASSERT_TRUE(resize(8));
    ASSERT_TRUE(now().exchange);
    EXPECT_EQ(now().exchange->size_before, kCxlGranule * 5);
    EXPECT_EQ(held_size(now()), kCxlGranule * 9);
    agent().new_memory = NewMemory::kRefused;
    rig.report(agent());
    EXPECT_TRUE(is_online_with(5));
    EXPECT_TRUE(rig.has_event("composition.resize-failed", "online-refused"));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST_F(Exchanges, WhatComesNotErasedIsReplacedOrUndone) {
    for (const std::uint64_t spare : {1, 2}) {
        Rig one;
        one.fabric->add_mld(2, {4});
        one.fabric->add_mld(3, {0, 0, 0}, spare);
        one.fabric->sanitize_lies = true;
        one.start_ready();
        const CompositionId c = one.online("host0", 4).id;
        one.agents[0]->new_memory = NewMemory::kIgnored;
        ASSERT_TRUE(one.resize(c, 1));
        ASSERT_TRUE(one.run_until([&] { return one.get(c).parts.back().state == kOnlining; }));
        const Part dirty = one.get(c).parts.back();
        for (FakeLd& ld : one.fabric->port(3).lds)
            if (ld.serial == dirty.serial.value) ld.stale = true;
        one.agents[0]->new_memory = NewMemory::kOnlined;
        one.report(*one.agents[0]);
        const std::uint64_t units = spare == 1 ? 4 : 1;
        EXPECT_TRUE(one.run_until([&] {
            return one.get(c).state == kOnline && held_size(one.get(c)) == kCxlGranule * units;
        })) << spare;
        EXPECT_EQ(one.get(c).size, kCxlGranule * units);
        EXPECT_EQ(one.has_event("composition.resize-failed", "not-erased"), spare == 1);
    }
}

}  // namespace
}  // namespace memtide::fm

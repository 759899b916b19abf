// Compositions of dynamic capacity devices: offered, accepted, given back, and what comes in between.
#include <algorithm>

#include <gtest/gtest.h>

#include "fabric-manager/model/inventory.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

DeviceId dcd_at(std::uint8_t port) {
    return device_id(DeviceKind::kDcd, SerialNumber{0x4d54'0000'0000'0000ull + (std::uint64_t{port} << 32)},
                     SwitchId("switch0"), port);
}
const Device& device_of(Rig& rig, std::uint8_t port = 2) {
    return *rig.manager->inventory().device(dcd_at(port));
}
emul::DynamicCapacity& dynamic_of(Rig& rig, std::uint8_t port = 2) { return *rig.fabric->port(port).dynamic; }

// Of two units for host0, which does with the offer what it says: bound by now.
CompositionId offered_to_host0(Rig& rig, FakeAgent::Offers offers) {
    rig.agents[0]->offers = offers;
    rig.fabric->add_dcd(2, 2, {4});
    rig.start_ready();
    const CompositionId id = rig.create("host0", 2)->composition.id;
    EXPECT_TRUE(rig.reaches(id, kOnlining));
    return id;
}

// All of the device is free again, for the device as for the manager.
void expect_all_free(Rig& rig, std::uint64_t total) {
    EXPECT_EQ(rig.manager->pool().free, units(total));
    EXPECT_EQ(dynamic_of(rig).free_memory().size(), device_of(rig).size.value);
    EXPECT_TRUE(dynamic_of(rig).tags().empty());
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(DynamicCapacity, IsOfferedAcceptedOnlineAndGivenBack) {
    Rig rig;
    rig.fabric->add_dcd(2, 4, {8});
    rig.start_ready();
    EXPECT_EQ(device_of(rig).id.value, "dcd-4d54000200000000");
    EXPECT_EQ(rig.manager->pool().free, units(8));
    const Composition c = rig.online("host0", 3);
    ASSERT_EQ(c.parts.size(), 1u);
    EXPECT_EQ(c.parts[0].memory.device, dcd_at(2));
    EXPECT_EQ(c.parts[0].serial.value, 0x4d54'0002'0000'0001u);
    EXPECT_EQ(rig.fabric->port(2).lds[0].size, units(3).value);
    EXPECT_EQ(rig.manager->pool().composed, units(3));
    ASSERT_EQ(dynamic_of(rig).tags().size(), 1u);
    const fmapi::DcTag tag = dynamic_of(rig).tags()[0].tag;
    EXPECT_EQ(std::string(tag.begin(), tag.begin() + 10), c.id.value.substr(2));
    EXPECT_EQ(rig.fabric->calls["sanitize"], 0);
    rig.released(c.id);
    EXPECT_EQ(rig.fabric->calls["release_capacity"], 0);
    expect_all_free(rig, 8);
}

TEST(DynamicCapacity, HostsShareADevice) {
    Rig rig;
    rig.fabric->add_dcd(2, 4, {4});
    rig.start_ready();
    const Composition one = rig.online("host0", 1);
    const Composition two = rig.online("host1", 2);
    const Composition three = rig.online("host0", 1);
    EXPECT_NE(one.parts[0].memory, three.parts[0].memory);
    EXPECT_FALSE(rig.create("host1", 1));
    rig.released(two.id);
    const Composition four = rig.online("host0", 2);
    for (const Composition& c : {one, three, four}) rig.released(c.id);
    expect_all_free(rig, 4);
}

TEST(DynamicCapacity, MemoryInPiecesAndSeveralRegionsIsOnePart) {
    Rig rig;
    rig.fabric->add_dcd(2, 4, {3, 2});
    rig.start_ready();
    const Composition first = rig.online("host0", 1);
    const Composition second = rig.online("host1", 1);
    rig.released(first.id);
    // One unit before and one behind the second, and another region.
    const Composition all = rig.online("host0", 4);
    EXPECT_EQ(all.parts.size(), 1u);
    EXPECT_EQ(rig.manager->pool().free, units(0));
    rig.released(all.id);
    rig.released(second.id);
    expect_all_free(rig, 5);
}

TEST(DynamicCapacity, HostThatDoesNotAnswerIsWaitedFor) {
    Rig rig;
    const CompositionId id = offered_to_host0(rig, FakeAgent::Offers::kIgnored);
    rig.settle();
    EXPECT_EQ(rig.get(id).state, kOnlining);
    EXPECT_TRUE(device_of(rig).lds[0].offered);
    EXPECT_EQ(device_of(rig).lds[0].size, units(2));
    EXPECT_EQ(rig.manager->pool().free, units(2));
    EXPECT_EQ(rig.fabric->calls["add_capacity"], 1);
    // Released before it was accepted: the offer is withdrawn.
    rig.released(id);
    expect_all_free(rig, 4);
}

TEST(DynamicCapacity, HostThatRefusesIsOfferedItAgain) {
    Rig rig;
    const CompositionId id = offered_to_host0(rig, FakeAgent::Offers::kRefused);
    ASSERT_TRUE(rig.run_until([&] { return rig.fabric->calls["add_capacity"] >= 2; }));
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("composition.retry", "it was offered again"); }));
    rig.agents[0]->offers = FakeAgent::Offers::kTaken;
    rig.report(*rig.agents[0]);
    ASSERT_TRUE(rig.reaches(id, kOnline));
    EXPECT_EQ(rig.get(id).state, kOnline);
    rig.released(id);
    expect_all_free(rig, 4);
}

TEST(DynamicCapacity, AgentThatSaysOnlineBeforeItsHostAcceptedIsNotBelieved) {
    Rig rig;
    const CompositionId id = offered_to_host0(rig, FakeAgent::Offers::kIgnored);
    // What the agent says follows from the size that its host has.
    rig.fabric->port(2).lds[0].size = 1;
    rig.report(*rig.agents[0]);
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.retry", "were accepted"); }));
    EXPECT_EQ(rig.get(id).state, kOnlining);
    rig.agents[0]->offers = FakeAgent::Offers::kTaken;
    rig.report(*rig.agents[0]);
    EXPECT_TRUE(rig.reaches(id, kOnline));
}

TEST(DynamicCapacity, WhatAHostDoesNotGiveBackIsTakenByForce) {
    Rig rig;
    rig.agents[0]->gives_back = false;
    rig.fabric->add_dcd(2, 2, {4});
    rig.fabric->port(2).keeps_at_unbind = true;
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    rig.released(c.id);
    EXPECT_EQ(rig.fabric->calls["release_capacity"], 1);
    expect_all_free(rig, 4);
}

TEST(DynamicCapacity, WithoutAListOfTagsItGoesOnAllTheSame) {
    Rig rig;
    rig.fabric->add_dcd(2, 2, {4});
    rig.fabric->port(2).tells_tags = false;
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    rig.settle();
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    rig.released(c.id);
    expect_all_free(rig, 4);
}

TEST(DynamicCapacity, WhatSomebodyTookAwayIsMissedAndReplaced) {
    Rig rig;
    rig.quick();
    rig.fabric->add_dcd(2, 2, {4});
    rig.start_ready();
    PlacementPolicy policy;
    policy.reprovide = true;
    const Composition c = rig.online("host0", 1, policy);
    dynamic_of(rig).detach(0);
    FakeSwitch::settle_dcd(rig.fabric->port(2));
    rig.fabric->port(2).lds[0].online = false;  // gone from under its host
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    EXPECT_TRUE(rig.has_event("composition.part-lost", "its device lists it no longer"));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    // What is left bound there without memory goes back.
    ASSERT_TRUE(rig.run_until([&] { return !device_of(rig).lds[0].bound_at; }));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(DynamicCapacity, ForeignExtentsAreLeftAlone) {
    Rig rig;
    rig.fabric->add_dcd(2, 2, {4});
    fmapi::InitiateDynamicCapacityAddRequest request;
    request.host = 1;
    request.length = units(3).value;
    request.tag[0] = 7;
    ASSERT_EQ(dynamic_of(rig).add(request, 10), fmapi::ReturnCode::kSuccess);
    rig.fabric->accept_capacity(rig.fabric->port(2).lds[1]);
    rig.start_ready();
    EXPECT_EQ(rig.manager->pool().foreign, units(3));
    EXPECT_EQ(rig.manager->pool().free, units(1));
    EXPECT_FALSE(rig.create("host0", 2));
    const Composition c = rig.online("host0", 1);
    rig.released(c.id);
    EXPECT_EQ(dynamic_of(rig).accepted(1).size(), 1u);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(DynamicCapacity, WhatSomebodyElseAddsToItTakesNothingAway) {
    Rig rig;
    rig.fabric->add_dcd(2, 2, {4});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    fmapi::InitiateDynamicCapacityAddRequest request;
    request.length = units(2).value;
    ASSERT_EQ(dynamic_of(rig).add(request, 10), fmapi::ReturnCode::kSuccess);
    rig.fabric->accept_capacity(rig.fabric->port(2).lds[0]);
    ASSERT_TRUE(rig.run_until([&] { return device_of(rig).lds[0].size == units(3); }));
    rig.report(*rig.agents[0]);
    rig.settle();
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    rig.released(c.id);
    expect_all_free(rig, 4);
}

// As after a restart while another manager is at the device, or the device is busy.
TEST(DynamicCapacity, DeviceThatCannotBeReadAtTheStartIsNotGone) {
    Rig rig;
    rig.quick();
    rig.fabric->add_dcd(2, 2, {4});
    rig.fabric->add_mld(3, {1, 1});
    rig.start_ready();
    const Composition c = rig.online("host0", 4);
    const Composition other = rig.online("host1", 1);
    rig.kill();
    bool unreadable = true;
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When) -> std::optional<Error> {
        const bool hit = command == "dc_extents" || command == "ld_allocations";
        if (!unreadable || !hit) return std::nullopt;
        return Error{ErrorCode::kConflict, "Busy (0006h)"};
    };
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return rig.events_of("device.unreadable") >= 2; }));
    rig.settle();
    for (const Composition& one : {c, other}) EXPECT_EQ(rig.get(one.id).state, kOnline);
    ASSERT_TRUE(rig.release(other.id));
    EXPECT_TRUE(
        rig.run_until([&] { return waiting_for(rig.get(other.id)).find("Busy") != std::string::npos; }));
    unreadable = false;
    EXPECT_TRUE(rig.reaches(other.id, kReleased));
    rig.released(c.id);
    expect_all_free(rig, 6);
}

TEST(DynamicCapacity, ForeignOffersAreLeftAlone) {
    Rig rig;
    rig.fabric->add_dcd(2, 2, {4});
    fmapi::InitiateDynamicCapacityAddRequest request;
    request.length = units(3).value;
    request.tag[0] = 7;
    ASSERT_EQ(dynamic_of(rig).add(request, 10), fmapi::ReturnCode::kSuccess);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    EXPECT_EQ(c.parts[0].memory.ld, LdId{1});
    EXPECT_EQ(dynamic_of(rig).offered(0).size(), 1u);
    // What is offered to others shows only when it is asked for; once they have it no more, it can be had.
    const Outcome<Created> refused = rig.create("host1", 3);
    if (refused) {
        EXPECT_TRUE(rig.reaches(refused->composition.id, kFailed));
    }
    rig.released(c.id);
    dynamic_of(rig).detach(0);
    FakeSwitch::settle_dcd(rig.fabric->port(2));
    ASSERT_TRUE(rig.run_until([&] { return device_of(rig).lds[0].use == LdUse::kUnallocated; }));
    rig.released(rig.online("host1", 4).id);
    expect_all_free(rig, 4);
}

TEST(DynamicCapacity, ForeignExtentsOfOtherSizesAreCounted) {
    Rig rig;
    rig.fabric->add_dcd(2, 2, {4, 4});
    ASSERT_EQ(dynamic_of(rig).configure({.region = 1, .block_size = 2u << 20, .sanitize_on_release = 0}),
              fmapi::ReturnCode::kSuccess);
    fmapi::InitiateDynamicCapacityAddRequest request;
    request.region = 1;
    request.length = 2u << 20;
    ASSERT_EQ(dynamic_of(rig).add(request, 10), fmapi::ReturnCode::kSuccess);
    rig.fabric->accept_capacity(rig.fabric->port(2).lds[0]);
    rig.start_ready();
    EXPECT_EQ(rig.manager->pool().foreign, Bytes{2u << 20});
    rig.released(rig.online("host0", 4).id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(DynamicCapacity, ARegionThatDoesNotSanitizeIsNotUsed) {
    Rig rig;
    rig.fabric->add_dcd(2, 2, {4, 4});
    ASSERT_EQ(dynamic_of(rig).configure({.region = 0, .block_size = 256ull << 20, .sanitize_on_release = 0}),
              fmapi::ReturnCode::kSuccess);
    rig.start_ready();
    EXPECT_EQ(rig.manager->pool().free, units(4));
    const Composition c = rig.online("host0", 4);
    EXPECT_GE(dynamic_of(rig).accepted(0).front().dpa, units(4).value);
    rig.released(c.id);
    EXPECT_EQ(rig.manager->pool().free, units(4));
    ASSERT_EQ(dynamic_of(rig).configure({.region = 1, .block_size = 256ull << 20, .sanitize_on_release = 0}),
              fmapi::ReturnCode::kSuccess);
    EXPECT_TRUE(
        rig.run_until([&] { return rig.has_event("device.unreadable", "none of its regions sanitizes"); }));
}

TEST(DynamicCapacity, GrowsAndShrinksByParts) {
    Rig rig;
    rig.fabric->add_dcd(2, 4, {8});
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    ASSERT_TRUE(rig.resize(c.id, 5));
    ASSERT_TRUE(rig.run_until(
        [&] { return rig.get(c.id).state == kOnline && lasting_size(rig.get(c.id)) == units(5); }));
    ASSERT_TRUE(rig.resize(c.id, 3));
    ASSERT_TRUE(rig.run_until(
        [&] { return rig.get(c.id).state == kOnline && held_size(rig.get(c.id)) == units(3); }));
    rig.released(c.id);
    expect_all_free(rig, 8);
}

// At each step that has an effect: the manager dies before it, or after it and before it knows.
TEST(DynamicCapacity, KilledAtAnyStepItEndsWhereItShould) {
    for (const char* command : {"add_capacity", "bind", "unbind", "release_capacity"}) {
        for (const FakeSwitch::When when : {FakeSwitch::When::kBefore, FakeSwitch::When::kAfter}) {
            Rig rig;
            rig.agents[0]->gives_back = false;
            rig.fabric->add_dcd(2, 2, {3, 2});
            rig.fabric->port(2).keeps_at_unbind = true;
            rig.start_ready();
            bool struck = false;
            rig.fabric->fault = [&](std::string_view now, FakeSwitch::When at) -> std::optional<Error> {
                if (struck || now != command || at != when) return std::nullopt;
                struck = true;
                return Error{ErrorCode::kUnavailable, "cut off"};
            };
            const CompositionId id = rig.create("host0", 4)->composition.id;
            (void)rig.run_until([&] { return struck || rig.get(id).state == kOnline; });
            if (struck) {
                rig.kill();
                rig.start_ready();
            }
            ASSERT_TRUE(rig.reaches(id, kOnline)) << command;
            ASSERT_TRUE(rig.release(id));
            (void)rig.run_until([&] { return struck || is_end(rig.get(id).state); });
            if (!is_end(rig.get(id).state)) {
                rig.kill();
                rig.start_ready();
            }
            ASSERT_TRUE(rig.reaches(id, kReleased)) << command;
            EXPECT_TRUE(struck) << command;
            expect_all_free(rig, 5);
        }
    }
}

}  // namespace
}  // namespace memtide::fm

// Devices whose free memory is in pieces, and what becomes of compositions that need it in one.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/model/inventory.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
using testing::HasSubstr;

DeviceId at_port(std::uint8_t port) {
    return device_id(DeviceKind::kMld, SerialNumber{0x4d54'0000'0000'0000ull + (std::uint64_t{port} << 32)},
                     SwitchId("switch0"), port);
}
// What is placed first is bound in the middle of the device at port 2; beside it are two pieces of one unit.
void two_holes(Rig& rig) {
    rig.fabric->add_mld(2, {1, 1, 1});
    rig.fabric->place_lds(2, {1, 0, 2});
}
const Part& lasting_part(const Composition& c) { return *std::ranges::find_if(c.parts, is_lasting); }

TEST(Carve, FreeLdThatIsInTheWayGivesItsMemoryUp) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1, 1, 0}, 1);
    rig.start_ready();
    const Composition c = rig.online("host0", 3);
    EXPECT_EQ(rig.fabric->calls["set_ld_allocations"], 1);
    EXPECT_TRUE(rig.has_event("composition.retry", "Resources Exhausted"));
    EXPECT_TRUE(rig.has_event("composition.retry", "so that what is free is in one piece"));
    EXPECT_EQ(std::ranges::count(c.steps, "allocate", &Step::name), 2);
    rig.released(c.id);
    EXPECT_EQ(rig.manager->pool().free, units(4));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, WholeDeviceIsHadHoweverItWasCutBefore) {
    for (std::uint64_t size = 1; size <= 6; ++size) {
        Rig rig;
        rig.fabric->add_mld(2, {1, 2, 1, 1, 0, 0}, 1);
        rig.fabric->place_lds(2, {5, 2, 0, 4});
        rig.start_ready();
        rig.released(rig.online("host0", size).id);
        EXPECT_EQ(rig.manager->pool().free, units(6));
        EXPECT_EQ(rig.wrong(), kNone) << size;
    }
}

TEST(Carve, PartGoesToAnotherDeviceWhenItsOwnCannot) {
    Rig rig;
    two_holes(rig);
    rig.fabric->add_mld(3, {1, 1, 1, 1});
    rig.start_ready();
    const Composition middle = rig.online("host0", 1);
    ASSERT_EQ(middle.parts[0].memory, (LdAddress{at_port(2), LdId{0}}));
    const Composition c = rig.online("host0", 2);
    ASSERT_EQ(c.parts.size(), 2u);
    EXPECT_EQ(c.parts[0].state, kFailed);
    EXPECT_EQ(c.parts[0].memory.device, at_port(2));
    EXPECT_EQ(c.parts[0].reason->code, "allocate-refused");
    EXPECT_EQ(lasting_part(c).memory.device, at_port(3));
    EXPECT_TRUE(rig.has_event("composition.reprovided", "it gets 512MiB of mld-4d54000300000000 instead"));
    EXPECT_FALSE(c.reason);
    rig.released(c.id);
    rig.released(middle.id);
    EXPECT_EQ(rig.manager->pool().free, units(7));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, OnlyFreeVppbIsHandedOn) {
    Rig rig;
    rig.fabric->vcss[0].vppbs.resize(2);
    two_holes(rig);
    rig.fabric->add_mld(3, {1, 1, 1, 1});
    rig.start_ready();
    rig.online("host0", 1);
    const Composition c = rig.online("host0", 2);
    EXPECT_EQ(lasting_part(c).where, c.parts[0].where);
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, WhatIsLeftInPiecesIsUsedTogetherWithAnotherDevice) {
    Rig rig;
    two_holes(rig);
    rig.fabric->add_mld(3, {1});
    rig.start_ready();
    const Composition other = rig.online("host1", 1);  // of the smallest device
    ASSERT_EQ(other.parts[0].memory.device, at_port(3));
    const Composition middle = rig.online("host0", 1);
    rig.released(other.id);
    const Composition c = rig.online("host0", 2);
    EXPECT_EQ(std::ranges::count_if(c.parts, is_lasting), 2);
    EXPECT_EQ(lasting_size(c), units(2));
    rig.released(c.id);
    rig.released(middle.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, NothingElseThatFitsFailsAndSaysWhatWasTried) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1, 1, 1});
    rig.fabric->place_lds(2, {1, 0, 2, 3});
    rig.start_ready();
    const Composition middle = rig.online("host0", 1);
    EXPECT_EQ(rig.manager->pool().largest_free, units(3));
    const CompositionId id = rig.create("host0", 3)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kFailed));
    const Composition c = rig.get(id);
    EXPECT_EQ(c.reason->code, "allocate-refused");
    EXPECT_THAT(c.reason->detail,
                HasSubstr("refused to make LD 1 768MiB large, also with LDs 2, 3 set to 0"));
    EXPECT_THAT(c.reason->detail, HasSubstr("Resources Exhausted"));
    EXPECT_THAT(c.reason->detail, HasSubstr("nothing else fits: 768MiB are free"));
    EXPECT_EQ(c.undone, std::vector<std::string>{"reservation"});
    EXPECT_EQ(rig.manager->pool().free, units(3));

    // It is known from now on.
    EXPECT_EQ(rig.manager->pool().largest_free, units(2));
    EXPECT_EQ(rig.manager->pool().stranded, Bytes{});
    const Outcome<Created> again = rig.create("host1", 3);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, problem::kNoFittingDevice);
    EXPECT_THAT(again.error().detail, HasSubstr("it refused to carve 768MiB"));
    rig.released(rig.online("host1", 2).id);

    // Until something of it is free that was not.
    rig.released(middle.id);
    EXPECT_EQ(rig.manager->pool().largest_free, units(4));
    rig.released(rig.online("host1", 4).id);
    EXPECT_EQ(rig.manager->pool().free, units(4));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, DeviceThatSaysYesAndGivesLessIsLeftForAnother) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1, 1});
    rig.fabric->port(2).largest_ld = units(1).value;
    rig.fabric->add_mld(3, {1, 1, 1, 1});
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    EXPECT_EQ(lasting_part(c).memory.device, at_port(3));
    EXPECT_EQ(lasting_part(c).size, units(2));
    rig.released(c.id);
    EXPECT_EQ(rig.manager->pool().free, units(7));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, DeviceThatCannotCarveAtAllIsLeftForAnother) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 1, 1});
    rig.fabric->add_mld(3, {1, 1, 1, 1});
    int asked = 0;
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "set_ld_allocations" || when != FakeSwitch::When::kBefore || ++asked > 3)
            return std::nullopt;
        return Error{ErrorCode::kInvalidArgument, "Unsupported (0003h)"};
    };
    rig.start_ready();
    EXPECT_EQ(lasting_part(rig.online("host0", 2)).memory.device, at_port(3));
    EXPECT_EQ(asked, 4);
}

TEST(Carve, PowerCycleForgetsWhatWasRefused) {
    Rig rig;
    two_holes(rig);
    rig.start_ready();
    const Composition middle = rig.online("host0", 1);
    const CompositionId id = rig.create("host0", 2)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kFailed));
    EXPECT_EQ(rig.manager->pool().largest_free, units(1));
    rig.fabric->drop_connection();
    EXPECT_TRUE(rig.run_until([&] { return rig.manager->pool().largest_free == units(2); }));
}

TEST(Carve, PartOfAnInterleavedRegionIsReplacedAlone) {
    Rig rig;
    two_holes(rig);
    rig.fabric->add_mld(3, {2, 2});
    rig.fabric->add_mld(4, {2, 2, 2});
    rig.start_ready();
    const Composition middle = rig.online("host1", 1);
    ASSERT_EQ(middle.parts[0].memory.device, at_port(2));
    // Loaded more than the one whose memory is in pieces, which goes first therefore.
    const Composition other = rig.online("host1", 2);
    ASSERT_EQ(other.parts[0].memory.device, at_port(3));
    const Composition c = rig.online("host0", 4, ways(2));
    EXPECT_EQ(c.parts.size(), 3u);
    EXPECT_EQ(lasting_size(c), units(4));
    std::vector<Part> lasting;
    std::ranges::copy_if(c.parts, std::back_inserter(lasting), is_lasting);
    ASSERT_EQ(lasting.size(), 2u);
    EXPECT_EQ(lasting[0].region, lasting[1].region);
    EXPECT_NE(lasting[0].memory.device, lasting[1].memory.device);
    for (const Part& part : lasting) EXPECT_EQ(part.size, units(2));
    for (const CompositionId& id : {c.id, other.id, middle.id}) rig.released(id);
    EXPECT_EQ(rig.manager->pool().free, rig.manager->pool().capacity);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, GrowthThatNothingFitsGoesBackToTheSizeOfBefore) {
    Rig rig;
    two_holes(rig);
    rig.start_ready();
    const CompositionId id = rig.online("host0", 1).id;
    ASSERT_TRUE(rig.resize(id, 3));
    ASSERT_TRUE(
        rig.run_until([&] { return rig.has_event("composition.resize-failed", "allocate-refused"); }));
    ASSERT_TRUE(rig.reaches(id, kOnline));
    EXPECT_EQ(rig.get(id).size, units(1));
    EXPECT_EQ(rig.manager->pool().free, units(2));
    EXPECT_EQ(rig.wrong(), kNone);
}

// A composition of 4 at port 3 that is to shrink to 2, for which the device at port 2 refuses to carve.
CompositionId shrinking(Rig& rig, FakeAgent::NewMemory what_comes = FakeAgent::NewMemory::kOnlined) {
    two_holes(rig);
    rig.fabric->add_mld(3, {4});
    rig.start_ready();
    (void)rig.online("host1", 1);
    const CompositionId id = rig.online("host0", 4).id;
    rig.agents[0]->new_memory = what_comes;
    EXPECT_TRUE(rig.resize(id, 2));
    return id;
}

TEST(Carve, ExchangeForWhichNothingCanBeCarvedIsUndone) {
    Rig rig;
    const CompositionId id = shrinking(rig);
    ASSERT_TRUE(
        rig.run_until([&] { return rig.has_event("composition.resize-failed", "allocate-refused"); }));
    ASSERT_TRUE(rig.reaches(id, kOnline));
    const Composition c = rig.get(id);
    EXPECT_EQ(c.size, units(4));
    EXPECT_FALSE(c.exchange);
    EXPECT_EQ(lasting_part(c).size, units(4));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, ExchangeGoesOnWithWhatIsCarvedElsewhere) {
    Rig rig;
    rig.fabric->add_mld(4, {1, 1, 1, 1});
    const CompositionId id = shrinking(rig);
    ASSERT_TRUE(rig.run_until([&] { return rig.get(id).state == kOnline && !rig.get(id).exchange; }));
    const Composition c = rig.get(id);
    EXPECT_EQ(c.size, units(2));
    EXPECT_TRUE(rig.has_event("composition.reprovided", "instead"));
    EXPECT_EQ(lasting_size(c), units(2));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Carve, WhatIsCarvedElsewhereGoesBackWithTheExchange) {
    Rig rig;
    rig.fabric->add_mld(4, {1, 1, 1, 1});
    const CompositionId id = shrinking(rig, FakeAgent::NewMemory::kIgnored);
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided", "instead"); }));
    ASSERT_TRUE(rig.resize(id, 4));
    ASSERT_TRUE(rig.reaches(id, kOnline));
    const Composition c = rig.get(id);
    EXPECT_EQ(c.size, units(4));
    EXPECT_EQ(lasting_size(c), units(4));
    EXPECT_EQ(rig.wrong(), kNone);
}

// The one in the middle of the device at port 2, and one that has been on its way to another for so many
// turns.
std::pair<CompositionId, CompositionId> carving(Rig& rig, int turns) {
    two_holes(rig);
    rig.fabric->add_mld(3, {1, 1, 1, 0}, 1);
    rig.start_ready();
    CompositionId middle = rig.online("host0", 1).id;
    CompositionId coming = rig.create("host0", 2)->composition.id;
    rig.run_until([&, n = 0]() mutable { return ++n > turns; });
    return {std::move(middle), std::move(coming)};
}

TEST(Carve, ReleaseMeanwhileLeavesNothingBehind) {
    for (int turns = 0; turns < 60; turns += 2) {
        Rig rig;
        const auto [middle, id] = carving(rig, turns);
        ASSERT_TRUE(rig.release(id));
        ASSERT_TRUE(rig.reaches(id, kReleased)) << turns;
        rig.released(middle);
        EXPECT_EQ(rig.manager->pool().free, units(7)) << turns;
        EXPECT_EQ(rig.wrong(), kNone);
    }
}

TEST(Carve, ManagerThatIsKilledMeanwhileGoesOn) {
    for (int turns = 0; turns < 60; turns += 2) {
        Rig rig;
        const auto [middle, id] = carving(rig, turns);
        rig.kill();
        rig.start_ready();
        ASSERT_TRUE(rig.reaches(id, kOnline)) << turns;
        rig.released(id);
        rig.released(middle);
        EXPECT_EQ(rig.manager->pool().free, units(7)) << turns;
        EXPECT_EQ(rig.wrong(), kNone);
    }
}

}  // namespace
}  // namespace memtide::fm

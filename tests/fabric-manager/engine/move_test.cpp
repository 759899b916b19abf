// Devices that are plugged in at another port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/model/inventory.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
using testing::HasSubstr;

// Devices that move do not count as flapping.
void let_move(Rig& rig) {
    rig.quick();
    rig.config.flapping.limit = 0;
}
PlacementPolicy reprovide() {
    PlacementPolicy policy;
    policy.reprovide = true;
    return policy;
}
// What has a claim on the device, and on vPPBs of the switch.
int claims(Rig& rig, const SwitchId& id) {
    int count = 0;
    for (const Vcs& vcs : rig.manager->inventory().find_switch(id)->vcss)
        for (const Vppb& vppb : vcs.vppbs) count += vppb.owner ? 1 : 0;
    return count;
}
bool moved(Rig& rig, const std::string& to) {
    return rig.run_until([&] { return rig.has_event("device.moved", to); });
}

TEST(Move, FreeMemoryIsOfferedAtTheNewPort) {
    Rig rig;
    let_move(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_port(5);
    rig.start_ready();
    rig.fabric->move_device(2, *rig.fabric, 5);
    ASSERT_TRUE(moved(rig, "it was on port 2 of switch0 and is on port 5 of switch0 now"));
    const Composition c = rig.online("host0", 1);
    EXPECT_EQ(c.parts[0].port, 5);
    EXPECT_FALSE(rig.has_event("device.removed"));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Move, MemoryOfAHostIsErasedBeforeTheNextGetsIt) {
    Rig rig;
    let_move(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_port(5);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->move_device(2, *rig.fabric, 5);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    EXPECT_EQ(rig.get(c.id).reason->code, "device-moved");
    EXPECT_THAT(rig.get(c.id).reason->detail, HasSubstr("port 5 of switch0"));
    EXPECT_EQ(claims(rig, SwitchId("switch0")), 0);
    const int erased = rig.fabric->calls["sanitize"];
    EXPECT_EQ(rig.online("host1", 1).parts[0].port, 5);
    EXPECT_EQ(rig.fabric->calls["sanitize"], erased + 1);
    EXPECT_EQ(rig.wrong(), kNone);  // a bind of dirty memory among them
}

TEST(Move, LostPartIsProvidedAgainFromTheNewPort) {
    Rig rig;
    let_move(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_port(5);
    rig.start_ready();
    const Composition c = rig.online("host0", 1, reprovide());
    rig.fabric->move_device(2, *rig.fabric, 5);
    ASSERT_TRUE(moved(rig, "port 5"));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(claims(rig, SwitchId("switch0")), 1);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Move, PartThatIsNotBoundYetFollows) {
    Rig rig;
    let_move(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_port(5);
    rig.fabric->fault = [](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command == "bind" && when == FakeSwitch::When::kBefore)
            return Error{ErrorCode::kConflict, "Retry Required (0005h)"};
        return std::nullopt;
    };
    rig.start_ready();
    const Outcome<Created> created = rig.create("host0", 1);
    ASSERT_TRUE(created);
    const CompositionId id = created->composition.id;
    ASSERT_TRUE(rig.reaches(id, kBinding));
    rig.fabric->move_device(2, *rig.fabric, 5);
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.moved", "port 5"); }));
    rig.fabric->fault = nullptr;
    ASSERT_TRUE(rig.reaches(id, kOnline));
    EXPECT_EQ(rig.get(id).parts[0].port, 5);
    EXPECT_EQ(claims(rig, SwitchId("switch0")), 1);
    rig.released(id);
    EXPECT_EQ(rig.wrong(), kNone);
}

// The command goes to where the device was when it was read last.
TEST(Move, DeviceThatLeavesJustBeforeACommandIsLookedForNotGivenUp) {
    for (const std::string_view moment : {"sanitize", "bind"}) {
        Rig rig;
        let_move(rig);
        rig.fabric->add_mld(2, {1});
        rig.fabric->add_port(5);
        bool left = false;
        rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
            if (left || command != moment || when != FakeSwitch::When::kBefore) return std::nullopt;
            left = true;
            rig.fabric->move_device(2, *rig.fabric, 5);
            return Error{ErrorCode::kInvalidArgument, "Invalid Input (0002h): no such LD"};
        };
        rig.start_ready();
        const Composition c = rig.online("host0", 1);
        EXPECT_EQ(c.parts[0].port, 5) << moment;
        EXPECT_FALSE(rig.has_event("ld.quarantined"));
        rig.released(c.id);
        EXPECT_EQ(rig.wrong(), kNone);
    }
}

TEST(Move, TwoDevicesThatChangePlacesAreBothFollowed) {
    Rig rig;
    let_move(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {2});
    rig.start_ready();
    std::swap(rig.fabric->port(2), rig.fabric->port(3));
    std::swap(rig.fabric->port(2).id, rig.fabric->port(3).id);
    ASSERT_TRUE(moved(rig, "on port 2 of switch0 now"));
    ASSERT_TRUE(moved(rig, "on port 3 of switch0 now"));
    EXPECT_EQ(rig.online("host0", 2).parts[0].port, 2);
    EXPECT_FALSE(rig.has_event("device.unreadable"));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Move, DeviceIsFollowedToAnotherSwitch) {
    Rig rig;
    let_move(rig);
    FakeSwitch& second = rig.add_second_switch();
    rig.fabric->add_mld(2, {1});
    second.add_port(7);
    rig.start_ready();
    const Composition c = rig.online("host0", 1, reprovide());
    rig.fabric->move_device(2, second, 7);
    ASSERT_TRUE(moved(rig, "it was on port 2 of switch0 and is on port 7 of switch1 now"));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(claims(rig, SwitchId("switch0")), 0);
    EXPECT_EQ(claims(rig, SwitchId("switch1")), 1);
    EXPECT_EQ(rig.wrong(), kNone);
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Move, PartThatIsNotBoundYetFollowsToAnotherSwitch) {
    Rig rig;
    let_move(rig);
    FakeSwitch& second = rig.add_second_switch();
    rig.fabric->add_mld(2, {1});
    second.add_port(7);
    rig.fabric->fault = [](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command == "bind" && when == FakeSwitch::When::kBefore)
            return Error{ErrorCode::kConflict, "Retry Required (0005h)"};
        return std::nullopt;
    };
    rig.start_ready();
    const Outcome<Created> created = rig.create("host0", 1);
    ASSERT_TRUE(created);
    const CompositionId id = created->composition.id;
    ASSERT_TRUE(rig.reaches(id, kBinding));
    rig.fabric->move_device(2, second, 7);
    ASSERT_TRUE(rig.reaches(id, kOnline));
    EXPECT_EQ(rig.get(id).parts[0].where.switch_id, SwitchId("switch1"));
    EXPECT_EQ(claims(rig, SwitchId("switch0")), 0);
    rig.released(id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Move, PartWhoseHostDoesNotReachTheNewPlaceFailsAndSaysWhereTheDeviceIs) {
    Rig rig;
    let_move(rig);
    FakeSwitch& second = rig.add_second_switch();
    rig.fabric->add_mld(2, {1});
    second.add_port(7);
    rig.fabric->fault = [](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command == "bind" && when == FakeSwitch::When::kBefore)
            return Error{ErrorCode::kConflict, "Retry Required (0005h)"};
        return std::nullopt;
    };
    rig.start_ready();
    const Outcome<Created> created = rig.create("host1", 1);
    ASSERT_TRUE(created);
    ASSERT_TRUE(rig.reaches(created->composition.id, kBinding));
    rig.fabric->move_device(2, second, 7);
    ASSERT_TRUE(rig.reaches(created->composition.id, kFailed));
    EXPECT_EQ(rig.get(created->composition.id).reason->code, "device-moved");
    EXPECT_THAT(rig.get(created->composition.id).reason->detail, HasSubstr("port 7 of switch1"));
    EXPECT_EQ(claims(rig, SwitchId("switch0")), 0);
}

TEST(Move, QuarantineFollowsTheDevice) {
    Rig rig;
    let_move(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_port(5);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->ends_with["sanitize"] = fmapi::ReturnCode::kPermanentMediaFailure;
    ASSERT_TRUE(rig.release(c.id));
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    rig.fabric->move_device(2, *rig.fabric, 5);
    ASSERT_TRUE(moved(rig, "port 5"));
    EXPECT_EQ(rig.manager->pool().quarantined, kCxlGranule);
    EXPECT_FALSE(rig.create("host1", 1));
}

// A second device with the number of one that is there is no move.
TEST(Move, DeviceThatStaysWhereItIsDoesNotMove) {
    Rig rig;
    let_move(rig);
    FakeSwitch& second = rig.add_second_switch();
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    second.add_mld(2, {1});  // the same serial numbers
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("device.unreadable", "two devices"); }));
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    EXPECT_FALSE(rig.has_event("device.moved"));
    EXPECT_EQ(rig.events_of("device.unreadable"), 1);
    // And once the first is gone, the second is taken for it.
    rig.fabric->remove_device(2);
    EXPECT_TRUE(moved(rig, "switch1"));
}

// Its hosts may still reach the device through the switch that only its manager cannot talk to.
TEST(Move, DeviceOfASwitchThatDoesNotAnswerIsNotBelievedToHaveMoved) {
    Rig rig;
    let_move(rig);
    FakeSwitch& second = rig.add_second_switch();
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->down = true;
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("switch.down"); }));
    second.add_mld(2, {1});
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("device.unreadable", "two devices"); }));
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    EXPECT_FALSE(rig.has_event("device.moved"));
}

}  // namespace
}  // namespace memtide::fm

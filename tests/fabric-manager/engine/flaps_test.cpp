// What comes and goes all the time is held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/model/inventory.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
using testing::HasSubstr;

// More than two changes flap, and the hold outlasts the test.
void flap_soon(Rig& rig) {
    rig.quick();
    rig.config.flapping = {.limit = 2,
                           .window = Milliseconds(60'000),
                           .hold = Milliseconds(3'600'000),
                           .hold_max = Milliseconds(3'600'000)};
}
bool is_present(Rig& rig, std::uint8_t port) {
    return rig.manager->inventory().device_at(SwitchId("switch0"), port) != nullptr;
}
// Out and in again, and seen both times.
void replug(Rig& rig, std::uint8_t port, int times) {
    for (int i = 0; i < times; ++i) {
        const FakePort device = rig.fabric->port(port);
        rig.fabric->remove_device(port);
        ASSERT_TRUE(rig.run_until([&] { return !is_present(rig, port); }));
        rig.fabric->port(port) = device;
        ASSERT_TRUE(rig.run_until([&] { return is_present(rig, port); }));
    }
}

TEST(Flaps, DeviceThatFlapsIsToldOnceAndNotUsed) {
    Rig rig;
    flap_soon(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    replug(rig, 2, 10);
    EXPECT_TRUE(rig.run_until([&] { return rig.events_of("device.flapping") == 1; }));
    EXPECT_LE(rig.events_of("device.removed") + rig.events_of("device.added"), 4);
    const Outcome<Created> refused = rig.create("host0", 1);
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.error().excluded.size(), 1U);
    EXPECT_EQ(refused.error().excluded[0].constraint, "flapping");
    EXPECT_THAT(rig.manager->devices()[0].held, HasSubstr("comes and goes"));
    EXPECT_THAT(rig.metrics().render(), HasSubstr("memtide_fm_flapping{kind=\"device\"} 1"));
}

TEST(Flaps, DeviceThatHasBeenQuietIsUsedAgain) {
    Rig rig;
    flap_soon(rig);
    rig.config.flapping.hold = Milliseconds(30);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    replug(rig, 2, 2);
    ASSERT_TRUE(rig.run_until([&] { return rig.events_of("device.settled") >= 1; }));
    EXPECT_EQ(rig.manager->devices()[0].held, "");
    EXPECT_TRUE(rig.online("host0", 1).was_online);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Flaps, LostPartIsNotProvidedAgainFromADeviceThatFlaps) {
    Rig rig;
    flap_soon(rig);
    rig.fabric->add_mld(2, {1});
    PlacementPolicy policy;
    policy.reprovide = true;
    rig.start_ready();
    const Composition c = rig.online("host0", 1, policy);
    replug(rig, 2, 8);
    rig.settle();
    EXPECT_LE(rig.events_of("composition.reprovided"), 2);
    EXPECT_LE(rig.events_of("composition.part-lost"), 2);
    rig.fabric->add_mld(3, {1});
    EXPECT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Flaps, SwitchThatFlapsGetsNothingNewAndKeepsWhatItHas) {
    Rig rig;
    flap_soon(rig);
    rig.fabric->add_mld(2, {1, 1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    const auto is_up = [&] { return rig.manager->inventory().find_switch(SwitchId("switch0"))->up; };
    for (int i = 0; i < 6; ++i) {
        rig.fabric->down = true;
        ASSERT_TRUE(rig.run_until([&] { return !is_up(); }));
        rig.fabric->down = false;
        ASSERT_TRUE(rig.run_until(is_up));
    }
    EXPECT_TRUE(rig.run_until([&] { return rig.events_of("switch.flapping") == 1; }));
    EXPECT_LE(rig.events_of("switch.down"), 2);
    const Outcome<Created> refused = rig.create("host1", 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().excluded.at(0).constraint, "flapping");
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Flaps, HostThatRebootsAgainAndAgainGetsNothingNew) {
    Rig rig;
    flap_soon(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    rig.report(*rig.agents[0]);
    for (int i = 0; i < 6; ++i) {
        rig.agents[0]->boot_id = "again-" + std::to_string(i);
        rig.report(*rig.agents[0]);
    }
    EXPECT_TRUE(rig.run_until([&] { return rig.events_of("host.flapping") == 1; }));
    const Outcome<Created> refused = rig.create("host0", 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, problem::kHostNotReachable);
    EXPECT_THAT(refused.error().detail, HasSubstr("reboots"));
    EXPECT_TRUE(rig.online("host1", 1).was_online);
}

TEST(Flaps, LinkThatFlapsBetweenTwoReadingsShowsInItsRecords) {
    Rig rig;
    flap_soon(rig);
    rig.fabric->records.emplace();
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    for (int i = 0; i < 10; ++i) rig.fabric->tell(2, fmapi::PhysicalSwitchEvent::kLinkStateChange);
    ASSERT_TRUE(rig.run_until([&] { return rig.events_of("device.flapping") == 1; }));
    EXPECT_LE(rig.events_of("switch.record"), 3);
    EXPECT_FALSE(rig.create("host0", 1));
}

}  // namespace
}  // namespace memtide::fm

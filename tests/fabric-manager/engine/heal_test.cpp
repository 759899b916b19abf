// A part that is lost, and what becomes of the rest.
#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
const std::vector<std::string> kNone;

PlacementPolicy spread(bool reprovide) {
    PlacementPolicy policy;
    policy.kind = PlacementKind::kSpread;
    policy.max_devices = 2;
    policy.reprovide = reprovide;
    return policy;
}
void quick(Rig& rig) {
    rig.config.timing.gone_after = Milliseconds(10);
    rig.config.timing.switch_poll = Milliseconds(10);
}
std::uint8_t port_of(const Part& part) { return part.port; }

TEST(Heal, LossOfOnePartLeavesTheOthersOnline) {
    Rig rig;
    quick(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 2, spread(false));
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.reaches(c.id, kDegraded));
    const Composition now = rig.get(c.id);
    EXPECT_EQ(now.reason->code, "device-vanished");
    EXPECT_EQ(lasting_size(now), kCxlGranule);
    EXPECT_TRUE(rig.has_event("composition.part-lost", "device-vanished"));
    for (const Event& event : rig.events()) EXPECT_NE(event.time, Time{}) << event.type;
    ASSERT_TRUE(rig.release(c.id));
    EXPECT_TRUE(rig.reaches(c.id, kReleased));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Heal, LossOfAllOfItFails) {
    Rig rig;
    quick(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    EXPECT_EQ(rig.get(c.id).reason->code, "device-vanished");
}

TEST(Heal, LostPartIsReplacedWhereThePolicySaysSo) {
    Rig rig;
    quick(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.fabric->add_mld(4, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 2, spread(true));
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(lasting_size(rig.get(c.id)), kCxlGranule * 2);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Heal, OnlyPartIsReplacedToo) {
    Rig rig;
    quick(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1, spread(true));
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    EXPECT_TRUE(rig.reaches(c.id, kOnline));
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Heal, ReplacementWaitsUntilThereIsMemory) {
    Rig rig;
    quick(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 2, spread(true));
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovide-waits"); }));
    EXPECT_EQ(rig.get(c.id).state, kDegraded);
    rig.fabric->add_mld(5, {1});
    EXPECT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(rig.events_of("composition.reprovide-waits"), 1);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Heal, DegradedOneThatHasNothingLeftIsReleasedAtOnce) {
    Rig rig;
    quick(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1, spread(true));
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.reaches(c.id, kDegraded));
    ASSERT_TRUE(rig.release(c.id));
    EXPECT_TRUE(rig.reaches(c.id, kReleased));
}

}  // namespace
}  // namespace memtide::fm

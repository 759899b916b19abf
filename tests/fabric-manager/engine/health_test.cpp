// What devices say of their health, and what follows.
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "fabric-manager/model/inventory.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
using fmapi::MediaStatus;

void ask_often(Rig& rig) { rig.config.timing.health_poll = Milliseconds(10); }

const Device& device_at(Rig& rig, std::uint8_t port) {
    return *rig.manager->inventory().device_at(SwitchId("switch0"), port);
}
bool says(Rig& rig, std::uint8_t port, HealthLevel level) {
    return rig.run_until([&] {
        const Device* device = rig.manager->inventory().device_at(SwitchId("switch0"), port);
        return device != nullptr && device->health && verdict(*device->health) == level;
    });
}

TEST(Health, DeviceThatCallsItselfCriticalGetsNothingNewUntilItIsWellAgain) {
    Rig rig;
    ask_often(rig);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    ASSERT_TRUE(says(rig, 2, HealthLevel::kNormal));
    rig.fabric->port(2).health.media_status = MediaStatus::kDataLossImminent;
    ASSERT_TRUE(says(rig, 2, HealthLevel::kCritical));
    const auto refused = rig.create("host0", 1);
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.error().excluded.size(), 1U);
    EXPECT_EQ(refused.error().excluded[0].constraint, "unhealthy");
    EXPECT_EQ(refused.error().excluded[0].detail, "it is about to lose all its data");
    rig.fabric->port(2).health.media_status = MediaStatus::kNormal;
    ASSERT_TRUE(says(rig, 2, HealthLevel::kNormal));
    EXPECT_EQ(rig.online("host0", 1).state, kOnline);
    EXPECT_TRUE(rig.run_until([&] { return rig.events_of("device.health") == 2; }));
    EXPECT_TRUE(rig.has_event("device.health", "it says that all is well again"));
}

TEST(Health, WarningIsToldOnceAndKeepsNothingAway) {
    Rig rig;
    ask_often(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->port(2).health = {.health_status = fmapi::kMaintenanceNeeded,
                                  .additional_status = 1,
                                  .life_used = 93,
                                  .temperature = 41};
    rig.start_ready();
    ASSERT_TRUE(says(rig, 2, HealthLevel::kWarning));
    EXPECT_EQ(rig.online("host0", 1).state, kOnline);
    const int asked = rig.fabric->calls["health_info"];
    ASSERT_TRUE(rig.run_until([&] {
        rig.fabric->port(2).health.temperature = 42;  // numbers change all the time: no news
        return rig.fabric->calls["health_info"] > asked + 3;
    }));
    EXPECT_EQ(rig.events_of("device.health"), 1);
    EXPECT_TRUE(rig.has_event("device.health", "warning"));
    EXPECT_EQ(device_at(rig, 2).health->life_used_percent, 93);
}

TEST(Health, DegradedCompositionIsProvidedAgainOnceADeviceIsWell) {
    Rig rig;
    ask_often(rig);
    rig.config.timing.gone_after = Milliseconds(10);
    rig.config.timing.switch_poll = Milliseconds(10);
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.start_ready();
    PlacementPolicy policy;
    policy.reprovide = true;
    const Composition c = rig.online("host0", 1, policy);
    const std::uint8_t lost = c.parts[0].port;
    const auto other = static_cast<std::uint8_t>(5 - lost);
    rig.fabric->port(other).health.health_status = fmapi::kReplacementNeeded;
    ASSERT_TRUE(says(rig, other, HealthLevel::kCritical));
    rig.fabric->remove_device(lost);
    ASSERT_TRUE(rig.reaches(c.id, kDegraded));
    rig.fabric->port(other).health.health_status = 0;
    EXPECT_TRUE(rig.reaches(c.id, kOnline));
}

TEST(Health, WhereTheFmOwnedLdDoesNotKnowAnLdIsAsked) {
    Rig rig;
    ask_often(rig);
    rig.fabric->add_mld(2, {1});
    rig.fabric->port(2).fm_ld_knows_health = false;
    rig.fabric->port(2).health.additional_status = 0x08;
    rig.start_ready();
    ASSERT_TRUE(says(rig, 2, HealthLevel::kCritical));
    EXPECT_EQ(device_at(rig, 2).unfit, "it is too hot");
}

TEST(Health, DeviceThatDoesNotSayIsAskedSeldomAndUsedAsAnyOther) {
    Rig rig;
    ask_often(rig);
    std::vector<std::chrono::steady_clock::time_point> asked;
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "health_info" || when != FakeSwitch::When::kBefore) return std::nullopt;
        asked.push_back(std::chrono::steady_clock::now());
        return Error{ErrorCode::kInvalidArgument, "Get Health Info: Unsupported (0003h)"};
    };
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return asked.size() == 2; })) << "the device and an LD of it";
    const Composition c = rig.online("host0", 1);
    rig.released(c.id);
    ASSERT_TRUE(rig.run_until([&] { return asked.size() == 4; }));
    EXPECT_GE(asked[2] - asked[0], 20 * rig.config.timing.health_poll) << "many times the pause";
    EXPECT_EQ(device_at(rig, 2).health, std::nullopt);
    EXPECT_EQ(rig.events_of("device.health"), 0);
}

TEST(Health, DeviceThatIsPutBackIsAskedAtOnce) {
    Rig rig;
    rig.config.timing.switch_poll = Milliseconds(10);
    rig.config.timing.health_poll = Milliseconds(3'600'000);
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    ASSERT_TRUE(says(rig, 2, HealthLevel::kNormal));
    const auto type = std::exchange(rig.fabric->port(2).type, fmapi::ConnectedDeviceType::kNone);
    ASSERT_TRUE(rig.run_until([&] { return rig.manager->pool().capacity == Bytes{}; }));
    rig.fabric->port(2).health.health_status = fmapi::kReplacementNeeded;
    rig.fabric->port(2).type = type;
    EXPECT_TRUE(says(rig, 2, HealthLevel::kCritical));
}

TEST(Health, WorstFindingComesFirst) {
    DeviceHealth health;
    health.maintenance_needed = true;
    health.media_status = 3;
    EXPECT_EQ(describe(findings(health)), "it has lost all its data; it needs maintenance");
    EXPECT_EQ(verdict(health), HealthLevel::kCritical);
    health.media_status = 0x7f;
    EXPECT_EQ(findings(health).front().what, "its media status is 7fh, which is not known here");
    EXPECT_EQ(verdict(health), HealthLevel::kWarning);
    EXPECT_EQ(verdict({}), HealthLevel::kNormal);
}

}  // namespace
}  // namespace memtide::fm

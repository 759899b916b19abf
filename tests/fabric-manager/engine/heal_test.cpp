// A part that is lost, and what becomes of the rest.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fabric-manager/store/backup.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

std::uint8_t port_of(const Part& part) { return part.port; }

TEST(Heal, LossOfOnePartLeavesTheOthersOnline) {
    Rig rig;
    rig.quick();
    const Composition c = rig.two_parts(false);
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
    rig.quick();
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    EXPECT_EQ(rig.get(c.id).reason->code, "device-vanished");
}

TEST(Heal, LostPartIsReplacedWhereThePolicySaysSo) {
    Rig rig;
    rig.quick();
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.fabric->add_mld(4, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 2, spread(2, true));
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(lasting_size(rig.get(c.id)), kCxlGranule * 2);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Heal, OnlyPartIsReplacedToo) {
    Rig rig;
    rig.quick();
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1, spread(2, true));
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    EXPECT_TRUE(rig.reaches(c.id, kOnline));
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Heal, ReplacementWaitsUntilThereIsMemory) {
    Rig rig;
    rig.quick();
    const Composition c = rig.two_parts(true);
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovide-waits"); }));
    EXPECT_EQ(rig.get(c.id).state, kDegraded);
    rig.fabric->add_mld(5, {1});
    EXPECT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_EQ(rig.events_of("composition.reprovide-waits"), 1);
    EXPECT_EQ(rig.wrong(), kNone);
}

// What the event of the loss says stays; what the composition says is what is so now.
TEST(Heal, OnlineAgainItHasNoReasonToBeOtherwise) {
    Rig rig;
    rig.quick();
    const Composition c = rig.two_parts(true);
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.reaches(c.id, kDegraded));
    ASSERT_TRUE(rig.get(c.id).reason);
    EXPECT_EQ(rig.get(c.id).reason->code, "device-vanished");
    rig.agents[0]->new_memory = FakeAgent::NewMemory::kIgnored;
    rig.fabric->add_mld(4, {1});
    ASSERT_TRUE(rig.reaches(c.id, kResizing));
    EXPECT_TRUE(rig.get(c.id).reason);  // it lacks something still
    rig.agents[0]->new_memory = FakeAgent::NewMemory::kOnlined;
    ASSERT_TRUE(rig.run_until([&] { return rig.get(c.id).parts.back().state == kOnlining; }));
    rig.report(*rig.agents[0]);
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_FALSE(rig.get(c.id).reason);
    EXPECT_TRUE(rig.has_event("composition.part-lost", "device-vanished"));
    for (const Event& event : rig.events()) {
        if (event.type == "composition.state" && event.state == "Online") {
            EXPECT_EQ(event.code, "");
        }
    }
    rig.kill();
    rig.start_ready();
    EXPECT_FALSE(rig.get(c.id).reason);
    rig.released(c.id);
    EXPECT_FALSE(rig.get(c.id).reason);
}

TEST(Heal, ResizedToWhatIsLeftItHasNoReasonEither) {
    Rig rig;
    rig.quick();
    const Composition c = rig.two_parts(false);
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.reaches(c.id, kDegraded));
    ASSERT_TRUE(rig.resize(c.id, 1));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    EXPECT_FALSE(rig.get(c.id).reason);
    // Lost again, it has one again.
    rig.fabric->remove_device(port_of(c.parts[1]));
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    EXPECT_EQ(rig.get(c.id).reason->code, "device-vanished");
}

TEST(Heal, ALossBeforeARebootIsStillWhatIsWrongAfterIt) {
    Rig rig;
    rig.quick();
    const Composition c = rig.two_parts(false);
    rig.fabric->remove_device(port_of(c.parts[0]));
    ASSERT_TRUE(rig.reaches(c.id, kDegraded));
    rig.agents[0]->boot_id = "boot-2";
    rig.report(*rig.agents[0]);
    ASSERT_TRUE(rig.run_until(
        [&] { return rig.get(c.id).state == kDegraded && rig.get(c.id).parts[1].boot_id == "boot-2"; }));
    EXPECT_TRUE(rig.get(c.id).reason);
}

TEST(Heal, DegradedOneThatHasNothingLeftIsReleasedAtOnce) {
    Rig rig;
    rig.quick();
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1, spread(2, true));
    rig.fabric->remove_device(2);
    ASSERT_TRUE(rig.reaches(c.id, kDegraded));
    ASSERT_TRUE(rig.release(c.id));
    EXPECT_TRUE(rig.reaches(c.id, kReleased));
}

// --- Lost, and back ---

// A link that is down: the port shows no device, and what was bound stays so.
void set_link(Rig& rig, std::uint8_t port, bool up) {
    using fmapi::ConnectedDeviceType;
    rig.fabric->port(port).type = up ? ConnectedDeviceType::kType3Mld : ConnectedDeviceType::kNone;
}
// The one that was made for what is found bound.
std::optional<Composition> adopted_one(Rig& rig) {
    for (const Composition& c : rig.manager->list({}).items)
        if (c.adopted) return c;
    return std::nullopt;
}
void expect_given_back(Rig& rig, const Composition& lost) {
    set_link(rig, lost.parts[0].port, true);
    ASSERT_TRUE(rig.run_until([&] { return adopted_one(rig).has_value(); }));
    const Composition found = *adopted_one(rig);
    EXPECT_EQ(found.tenant, lost.tenant);
    EXPECT_EQ(found.host, lost.host);
    EXPECT_TRUE(rig.reaches(found.id, kReleased));
    EXPECT_TRUE(rig.has_event("composition.adopted", lost.id.value));
    EXPECT_EQ(rig.wrong(), kNone);
}
Composition online_for_blue(Rig& rig) {
    rig.quick();
    rig.config.tenants["blue"].bytes = kCxlGranule;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    CompositionRequest request;
    request.host = HostId("host0");
    request.size = kCxlGranule;
    request.tenant = "blue";
    const auto created = rig.run(rig.manager->create(request, std::nullopt));
    EXPECT_TRUE(rig.reaches(created->composition.id, kOnline));
    return rig.get(created->composition.id);
}

TEST(Heal, WhatALostPartLeftBoundGoesBackToThePool) {
    Rig rig;
    const Composition c = online_for_blue(rig);
    set_link(rig, 2, false);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    expect_given_back(rig, c);
    EXPECT_EQ(rig.manager->pool().free, kCxlGranule);
}

TEST(Heal, WhatWasLostIsKnownAfterARestart) {
    Rig rig;
    const Composition c = online_for_blue(rig);
    set_link(rig, 2, false);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    rig.stop();
    rig.start();
    expect_given_back(rig, c);
}

TEST(Heal, ReplacedPartThatIsBackGoesBackToThePool) {
    Rig rig;
    rig.quick();
    rig.fabric->add_mld(2, {1});
    rig.fabric->add_mld(3, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1, spread(2, true));
    set_link(rig, c.parts[0].port, false);
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.reprovided"); }));
    ASSERT_TRUE(rig.reaches(c.id, kOnline));
    expect_given_back(rig, c);
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    EXPECT_EQ(rig.manager->pool().free, kCxlGranule);
}

// Others may have got it since the backup was made, and a restored state cannot know.
TEST(Heal, WhatABackupHadLostIsNotTakenFromWhoeverHasItNow) {
    Rig rig;
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("memtide-heal-{}", ::getpid());
    std::filesystem::create_directory(folder);
    rig.store.path = (folder / "state.db").string();
    const Composition c = online_for_blue(rig);
    set_link(rig, 2, false);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    rig.stop();
    const std::string backup = (folder / "backup.db").string();
    ASSERT_TRUE(backup_state(rig.store.path, backup));
    ASSERT_TRUE(restore_state(rig.store.path, backup));
    rig.start();
    set_link(rig, 2, true);
    ASSERT_TRUE(rig.run_until([&] { return adopted_one(rig).has_value(); }));
    const Composition found = *adopted_one(rig);
    EXPECT_EQ(found.tenant, std::nullopt);
    EXPECT_TRUE(rig.reaches(found.id, kOnline));
    rig.stop();
    std::filesystem::remove_all(folder);
}

// Somebody else may bind it there later; then that is somebody else's.
TEST(Heal, LostPartThatCameBackFreeIsForgotten) {
    Rig rig;
    const Composition c = online_for_blue(rig);
    const fmapi::Vppb binding = rig.fabric->vppb(0, c.parts[0].where.vppb);
    set_link(rig, 2, false);
    ASSERT_TRUE(rig.reaches(c.id, kFailed));
    rig.fabric->vppb(0, c.parts[0].where.vppb) = fmapi::Vppb{};
    set_link(rig, 2, true);
    ASSERT_TRUE(rig.run_until([&] { return rig.manager->pool().free == kCxlGranule; }));
    rig.settle();
    rig.fabric->vppb(0, c.parts[0].where.vppb) = binding;
    ASSERT_TRUE(rig.run_until([&] { return adopted_one(rig).has_value(); }));
    const Composition found = *adopted_one(rig);
    EXPECT_EQ(found.tenant, std::nullopt);
    EXPECT_TRUE(rig.reaches(found.id, kOnline));
}

}  // namespace
}  // namespace memtide::fm

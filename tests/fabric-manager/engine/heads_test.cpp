// Multi-headed devices as the manager reads them, and devices that lie about their heads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/engine/read_switch.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using testing::HasSubstr;

const SwitchId kSwitch("switch0");

// Ports 2 and 3 are heads 0 and 1 of one MLD with LDs 0 and 1, 2 and 3.
void make_heads(FakeSwitch& fabric) {
    for (const std::uint8_t id : {std::uint8_t{2}, std::uint8_t{3}}) {
        fabric.add_mld(id, {1, 1, 1, 1});
        FakePort& port = fabric.port(id);
        port.serial = fabric.port(2).serial;
        for (std::size_t i = 0; i < port.lds.size(); ++i) port.lds[i].serial = port.serial + 1 + i;
        port.heads = 2;
        port.ld_map = {0, 0, 1, 1};
        port.head_numbers = {0, 1};
        port.head = static_cast<std::uint8_t>(id - 2);
    }
}

class HeadsReadingTest : public ::testing::Test {
  protected:
    HeadsReadingTest() {
        fabric.add_hosts(4);
        make_heads(fabric);
        inventory.add_switch(kSwitch, "fake");
    }
    FabricReading read() {
        std::optional<Result<FabricReading>> result;
        boost::asio::co_spawn(io, read_switch(fabric, kSwitch, inventory, unanswered),
                              [&](std::exception_ptr failure, Result<FabricReading> value) {
                                  if (failure) std::rethrow_exception(failure);
                                  result = std::move(value);
                              });
        io.restart();
        io.run();
        return result.value().value();
    }
    std::string refusal() {
        const FabricReading reading = read();
        return reading.unreadable.empty() ? "" : reading.unreadable.front().why;
    }

    boost::asio::io_context io{1};
    FakeSwitch fabric{io.get_executor()};
    Inventory inventory;
    UnansweredHeads unanswered;
};

TEST_F(HeadsReadingTest, HeadIsTheOneWhoseLdsAnswer) {
    const FabricReading reading = read();
    ASSERT_EQ(reading.devices.size(), 2U);
    EXPECT_EQ(reading.devices[0].multi_headed->head, 0);
    EXPECT_EQ(reading.devices[1].multi_headed->head, 1);
    EXPECT_EQ(reading.devices[1].lds[2].serial.value, fabric.port(2).serial + 3);
    EXPECT_EQ(reading.devices[1].lds[0].serial.value, 0U);
}

// The sum of these four is 0 in 64 bits.
TEST_F(HeadsReadingTest, DeviceWhoseLdsAddUpToMoreThanItHasIsRefused) {
    for (FakeLd& ld : fabric.port(2).lds) ld.size = std::uint64_t{1} << 62;
    EXPECT_THAT(refusal(), HasSubstr("its LDs add up to more than the 1GiB it has"));
    fabric.port(2).heads = 1;
    EXPECT_THAT(refusal(), HasSubstr("its LDs add up to more than the 1GiB it has"));
}

TEST_F(HeadsReadingTest, CablesThatWereSwappedAreNoticed) {
    for (const DeviceReading& one : read().devices) ASSERT_TRUE(inventory.apply(kSwitch, one));
    std::swap(fabric.port(2).head, fabric.port(3).head);
    EXPECT_EQ(read().devices[0].multi_headed->head, 1);
}

TEST_F(HeadsReadingTest, DeviceThatIsKnownToHaveOneHeadIsNotAskedAgain) {
    fabric.remove_device(3);
    fabric.port(2).heads = 1;
    for (const DeviceReading& one : read().devices) ASSERT_TRUE(inventory.apply(kSwitch, one));
    int asked = 0;
    fabric.fault = [&](std::string_view command, FakeSwitch::When) -> std::optional<Error> {
        asked += command == "multi_headed_info" ? 1 : 0;
        return std::nullopt;
    };
    read();
    EXPECT_EQ(asked, 0);
}

TEST_F(HeadsReadingTest, PeerThatDoesNotAnswerTheQuestionTwiceHasOneHead) {
    fabric.remove_device(3);
    fabric.port(2).heads = 1;
    fabric.fault = [](std::string_view command, FakeSwitch::When) -> std::optional<Error> {
        if (command == "multi_headed_info") return Error{ErrorCode::kTimeout, "no answer"};
        return std::nullopt;
    };
    EXPECT_THAT(refusal(), HasSubstr("it does not say whether it has several heads"));
    EXPECT_FALSE(read().devices.at(0).multi_headed);
    for (const DeviceReading& one : read().devices) ASSERT_TRUE(inventory.apply(kSwitch, one));
    EXPECT_EQ(refusal(), "");
    // Another one at the same port has two chances as well.
    inventory.device_gone(kSwitch, 2);
    const FakePort device = fabric.port(2);
    fabric.remove_device(2);
    EXPECT_TRUE(read().devices.empty());
    fabric.port(2) = device;
    EXPECT_NE(refusal(), "");
}

TEST_F(HeadsReadingTest, AnswerThatWasLostIsNoWordOfOneHead) {
    int asked = 0;
    fabric.fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "multi_headed_info" || when != FakeSwitch::When::kBefore || ++asked > 1)
            return std::nullopt;
        return Error{ErrorCode::kTimeout, "no answer"};
    };
    const FabricReading first = read();
    ASSERT_EQ(first.devices.size(), 1U);
    EXPECT_EQ(first.devices[0].port, 3);
    const FabricReading second = read();
    ASSERT_EQ(second.devices.size(), 2U);
    EXPECT_EQ(second.devices[0].multi_headed->head, 0);
}

TEST_F(HeadsReadingTest, LiesAreRefusedByName) {
    FakePort& port = fabric.port(2);
    port.ld_map = {0, 7, 1, 1};
    EXPECT_THAT(refusal(), HasSubstr("LD 1 belongs to head 7, and it has no such head"));
    port.ld_map = {0, 0, 1};
    EXPECT_THAT(refusal(), HasSubstr("its LD map is of 3 LDs, and it has 4"));
    port.ld_map = {0, 0, 1, 1};
    port.head_numbers = {0, 0};
    EXPECT_THAT(refusal(), HasSubstr("it has 2 heads, and names 1"));
    port.head_numbers = {0, 1};
    port.head = 5;
    EXPECT_THAT(refusal(), HasSubstr("none of its LDs answers"));
    port.head = 0;
    EXPECT_EQ(refusal(), "");
}

// --- With the engine ---

std::vector<std::string> problems_of(Rig& rig) {
    std::vector<std::string> codes;
    for (const Event& event : rig.events())
        if (event.type == "device.unreadable") codes.push_back(event.code);
    return codes;
}

TEST(HeadsLife, DeviceWhoseAnswerWasLostIsNotGivenOutBeforeItIsAskedAgain) {
    Rig rig;
    make_heads(*rig.fabric);
    rig.config.timing.switch_poll = Milliseconds(3'600'000);  // it is not waited for
    bool lost = false;
    rig.fabric->fault = [&](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "multi_headed_info" || when != FakeSwitch::When::kBefore || lost) return std::nullopt;
        lost = true;
        return Error{ErrorCode::kTimeout, "no answer"};
    };
    rig.start_ready();
    ASSERT_TRUE(rig.run_until(
        [&] { return rig.manager->devices().size() == 1 && rig.manager->devices()[0].heads.size() == 2; }));
    EXPECT_TRUE(rig.run_until([&] { return rig.has_event("device.unreadable", "port 2"); }));
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(HeadsLife, CompositionsLiveAtBothHeadsOfOneDevice) {
    Rig rig;
    make_heads(*rig.fabric);
    rig.start_ready();
    EXPECT_EQ(rig.manager->inventory().devices().size(), 1U);
    EXPECT_EQ(rig.manager->pool().capacity, gibibytes(1));
    const Composition one = rig.online("host0", 1);
    const Composition two = rig.online("host1", 1);
    EXPECT_NE(one.parts[0].memory, two.parts[0].memory);
    EXPECT_EQ(rig.manager->pool().composed, mebibytes(512));
    rig.released(one.id);
    rig.released(two.id);
    EXPECT_EQ(rig.manager->pool().free, gibibytes(1));
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(HeadsLife, HeadThatLiesIsRefusedWithAnEventAndHarmsNobody) {
    Rig rig;
    make_heads(*rig.fabric);
    rig.config.timing.switch_poll = std::chrono::milliseconds(20);
    rig.fabric->port(3).head = 0;  // both claim the LDs of head 0
    rig.start_ready();
    ASSERT_TRUE(rig.run_until([&] { return !problems_of(rig).empty(); }));
    EXPECT_EQ(problems_of(rig), std::vector<std::string>{"duplicate-serial"});
    const Composition c = rig.online("host0", 1);
    EXPECT_EQ(c.parts[0].port, 2);
    rig.fabric->port(3).head = 1;
    rig.fabric->port(3).ld_map = {0, 1, 1, 1};  // they disagree
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("device.unreadable", "divided among the heads"); }));
    EXPECT_EQ(rig.get(c.id).state, CompositionState::kOnline);
    rig.fabric->port(3).ld_map = {0, 0, 1, 1};
    ASSERT_TRUE(
        rig.run_until([&] { return rig.manager->inventory().devices().begin()->second.heads.size() == 2; }));
    EXPECT_EQ(rig.get(c.id).state, CompositionState::kOnline);
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), std::vector<std::string>{});
}

TEST(HeadsLife, LosingOneHeadFailsItsCompositionsAlone) {
    Rig rig;
    make_heads(*rig.fabric);
    rig.config.timing.switch_poll = std::chrono::milliseconds(20);
    rig.config.timing.gone_after = std::chrono::milliseconds(40);
    rig.start_ready();
    std::vector<Composition> all;
    for (const char* host : {"host0", "host1", "host0", "host1"}) all.push_back(rig.online(host, 1));
    rig.fabric->remove_device(3);
    for (const Composition& c : all) {
        if (c.parts[0].port == 3)
            EXPECT_TRUE(rig.reaches(c.id, CompositionState::kFailed));
        else
            EXPECT_EQ(rig.get(c.id).state, CompositionState::kOnline);
    }
    EXPECT_EQ(std::ranges::count_if(all, [](const Composition& c) { return c.parts[0].port == 3; }), 2);
}

}  // namespace
}  // namespace memtide::fm

// Devices with several heads: one device, one capacity, and each LD through its own head only.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm::heads {
namespace {

using testing::HasSubstr;

constexpr std::uint8_t kPort = 8;
constexpr std::size_t kLds = 4;
constexpr std::size_t kVppbs = 3;
const DeviceId kDevice("mld-0000000000000100");

SwitchId switch_id(std::size_t n) { return SwitchId(fmt::format("switch{}", n)); }
HostId host_id(std::size_t n) { return HostId(fmt::format("host{}", n)); }

// Two switches with a host each, and one MLD of 2 GiB: LDs 0 and 1 at head 0 on switch0, 2 and 3 at head 1 on
// switch1.
struct Hardware {
    std::vector<Vcs> vcss{2};
    std::vector<Bytes> sizes{mebibytes(256), mebibytes(256), mebibytes(512), Bytes{}};
    std::vector<std::optional<std::uint8_t>> map{0, 0, 1, 1};

    Hardware() {
        for (Vcs& vcs : vcss)
            for (std::uint8_t i = 0; i < kVppbs; ++i) {
                vcs.vppbs.emplace_back();
                vcs.vppbs.back().id = i;
            }
    }
    [[nodiscard]] DeviceReading head(std::uint8_t number) const {
        DeviceReading reading{kPort, DeviceKind::kMld, SerialNumber{0x100}, gibibytes(2), kCxlGranule, {}};
        for (std::uint16_t i = 0; i < kLds; ++i) {
            const bool own = map[i] == number;
            reading.lds.push_back({LdId{i}, SerialNumber{own ? 0x101u + i : 0}, sizes[i]});
        }
        reading.multi_headed = MultiHeadedReading{2, number, map};
        return reading;
    }
    void show(Inventory& inventory, std::uint8_t at) const {
        SwitchReading fabric;
        fabric.ports.emplace_back();
        fabric.ports.back().id = kPort;
        fabric.vcss = {vcss[at]};
        inventory.apply(switch_id(at), fabric);
        ASSERT_TRUE(inventory.apply(switch_id(at), head(at)));
    }
};

class HeadsTest : public ::testing::Test {
  protected:
    HeadsTest() {
        for (std::size_t n = 0; n < 2; ++n) {
            inventory.add_switch(switch_id(n), "fake");
            inventory.add_host(host_id(n), {{switch_id(n), 0}});
            inventory.switch_up(switch_id(n), Time{});
        }
    }
    void show_both() {
        hardware.show(inventory, 0);
        hardware.show(inventory, 1);
    }
    static Composition composition(int n, std::uint8_t at, std::uint8_t vppb, std::uint16_t ld) {
        Composition c;
        c.id = CompositionId(fmt::format("c-{}", n));
        c.host = host_id(at);
        Part part;
        part.memory = {kDevice, LdId{ld}};
        part.where = {switch_id(at), 0, vppb};
        part.port = kPort;
        c.parts = {part};
        return c;
    }
    void bind(std::uint8_t at, std::uint8_t vppb, std::uint16_t ld) {
        Vppb& one = hardware.vcss[at].vppbs[vppb];
        one.status = BindingStatus::kBoundLd;
        one.port = kPort;
        one.ld = LdId{ld};
        inventory.apply(switch_id(at), 0, hardware.vcss[at].vppbs);
    }
    const LogicalDevice& ld(std::uint16_t id) { return *inventory.ld({kDevice, LdId{id}}); }

    Inventory inventory;
    Hardware hardware;
};

TEST_F(HeadsTest, TwoHeadsAreOneDeviceThatCountsOnce) {
    show_both();
    EXPECT_EQ(inventory.devices().size(), 1U);
    EXPECT_EQ(inventory.pool().capacity, gibibytes(2));
    EXPECT_EQ(inventory.pool().free, gibibytes(2));
    const std::vector<Head> heads{{0, switch_id(0), kPort}, {1, switch_id(1), kPort}};
    EXPECT_EQ(inventory.device(kDevice)->heads, heads);
    EXPECT_EQ(ld(0).serial.value, 0x101U);
    EXPECT_EQ(ld(2).serial.value, 0x103U);
}

TEST_F(HeadsTest, LdIsReachedThroughItsOwnHeadOnly) {
    show_both();
    EXPECT_TRUE(inventory.shows(switch_id(0), kPort, {kDevice, LdId{1}}));
    EXPECT_FALSE(inventory.shows(switch_id(0), kPort, {kDevice, LdId{2}}));
    EXPECT_EQ(inventory.way_to({kDevice, LdId{2}}), std::pair(switch_id(1), kPort));
    bind(1, 0, 0);  // what a switch that lies would show
    EXPECT_FALSE(ld(0).bound_at);
    bind(0, 0, 0);
    EXPECT_EQ(ld(0).bound_at, (VppbAddress{switch_id(0), 0, 0}));
    hardware.show(inventory, 1);
    EXPECT_EQ(ld(0).bound_at, (VppbAddress{switch_id(0), 0, 0}));
}

TEST_F(HeadsTest, LosingOneHeadLosesItsLdsAlone) {
    show_both();
    bind(0, 0, 0);
    bind(1, 0, 2);
    inventory.set_clean({kDevice, LdId{1}}, true);
    inventory.device_gone(switch_id(1), kPort);
    EXPECT_TRUE(inventory.device(kDevice)->present);
    EXPECT_TRUE(inventory.shows(switch_id(0), kPort, {kDevice, LdId{0}}));
    EXPECT_FALSE(inventory.shows(switch_id(1), kPort, {kDevice, LdId{2}}));
    EXPECT_TRUE(ld(0).bound_at);
    EXPECT_TRUE(ld(1).clean);
    EXPECT_FALSE(ld(2).bound_at);
    EXPECT_EQ(inventory.pool().capacity, gibibytes(2));
    inventory.device_gone(switch_id(0), kPort);
    EXPECT_FALSE(inventory.device(kDevice)->present);
    EXPECT_EQ(inventory.pool().capacity, Bytes{});
    show_both();
    EXPECT_EQ(inventory.device(kDevice)->heads.size(), 2U);
}

TEST_F(HeadsTest, MemoryBehindAHeadThatIsAwayIsStranded) {
    show_both();
    // 512 MiB at head 0, 512 MiB at head 1, 1 GiB that no LD has.
    EXPECT_EQ(inventory.pool().largest_free, mebibytes(1536));
    EXPECT_EQ(inventory.pool().stranded, Bytes{});
    inventory.switch_down(switch_id(1), "no answer");
    EXPECT_EQ(inventory.pool().stranded, mebibytes(512));
    EXPECT_EQ(inventory.pool().largest_free, mebibytes(1536));
}

TEST_F(HeadsTest, WhatWasRefusedThroughOneHeadSaysNothingOfTheOther) {
    show_both();
    inventory.note_refused_carve({kDevice, LdId{0}}, mebibytes(1024));
    const Device& device = *inventory.device(kDevice);
    EXPECT_EQ(largest_free(device, &device.heads[0]), mebibytes(768));
    EXPECT_EQ(largest_free(device, &device.heads[1]), mebibytes(1536));
    EXPECT_EQ(inventory.pool().stranded, Bytes{});
    inventory.note_refused_carve({kDevice, LdId{2}}, mebibytes(512));
    EXPECT_EQ(largest_free(device, &device.heads[0]), mebibytes(768));
    // Of the head's LDs one may be larger than what it would carve.
    EXPECT_EQ(inventory.pool().largest_free, mebibytes(768));
    EXPECT_EQ(inventory.pool().stranded, Bytes{});
}

TEST_F(HeadsTest, SameHeadTwiceIsADuplicate) {
    show_both();
    DeviceReading twin = hardware.head(0);
    const Result<DeviceId> refused = inventory.apply(switch_id(1), twin);
    EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
    EXPECT_THAT(refused.error().message, HasSubstr("head 0"));
    // The port that lied is out; the other head is as it was.
    EXPECT_TRUE(inventory.shows(switch_id(0), kPort, {kDevice, LdId{0}}));
    EXPECT_EQ(inventory.device(kDevice)->heads.size(), 1U);
}

TEST_F(HeadsTest, DeviceWithOneHeadIsNoHeadOfAnother) {
    hardware.show(inventory, 0);
    DeviceReading single = hardware.head(1);
    single.multi_headed.reset();
    EXPECT_EQ(inventory.apply(switch_id(1), single).error().code, ErrorCode::kAlreadyExists);
    Inventory other;
    other.add_switch(switch_id(0), "fake");
    other.add_switch(switch_id(1), "fake");
    ASSERT_TRUE(other.apply(switch_id(1), single));
    EXPECT_EQ(other.apply(switch_id(0), hardware.head(0)).error().code, ErrorCode::kAlreadyExists);
}

TEST_F(HeadsTest, HeadThatContradictsTheOtherIsRefusedAndHarmsNobody) {
    const auto refuses = [&](auto change, const char* why) {
        hardware.show(inventory, 0);
        bind(0, 0, 0);
        DeviceReading lie = hardware.head(1);
        change(lie);
        const Result<DeviceId> refused = inventory.apply(switch_id(1), lie);
        ASSERT_FALSE(refused) << why;
        EXPECT_EQ(refused.error().code, ErrorCode::kProtocol);
        EXPECT_THAT(refused.error().message, HasSubstr(why));
        EXPECT_TRUE(ld(0).bound_at);
        EXPECT_EQ(inventory.pool().capacity, gibibytes(2));
        EXPECT_EQ(inventory.device(kDevice)->heads.size(), 1U);
    };
    refuses([](DeviceReading& lie) { lie.multi_headed->heads = 3; }, "3 heads, not 2");
    refuses([](DeviceReading& lie) { lie.size = gibibytes(4); }, "another size");
    refuses([](DeviceReading& lie) { lie.multi_headed->ld_heads[0] = 1; }, "divided among the heads");
    refuses([](DeviceReading& lie) { lie.lds.pop_back(); }, "divided among the heads");
    refuses([](DeviceReading& lie) { lie.lds[3].size = gibibytes(2); }, "more memory in LDs");
}

TEST_F(HeadsTest, OneHeadDoesNotResizeTheLdsOfAnother) {
    show_both();
    inventory.resize({kDevice, LdId{2}}, mebibytes(256), {});
    hardware.show(inventory, 0);  // began before the other was carved
    EXPECT_EQ(ld(2).size, mebibytes(256));
}

TEST_F(HeadsTest, LdsThatAreDividedAnewAreFoundWithinAReadingOfEach) {
    show_both();
    hardware.map = {0, 1, 1, 1};
    EXPECT_FALSE(inventory.apply(switch_id(0), hardware.head(0)));  // the other still says what was
    hardware.show(inventory, 1);
    hardware.show(inventory, 0);
    EXPECT_EQ(ld(1).head, 1);
    EXPECT_TRUE(inventory.shows(switch_id(1), kPort, {kDevice, LdId{1}}));
    EXPECT_EQ(inventory.device(kDevice)->heads.size(), 2U);
}

TEST_F(HeadsTest, ClaimsOfAHeadThatWasNotSeenYetHold) {
    ASSERT_TRUE(inventory.claim(composition(1, 1, 0, 2)));
    hardware.show(inventory, 0);
    EXPECT_EQ(ld(2).owner, (PartId{CompositionId("c-1"), 0}));
    hardware.show(inventory, 1);
    EXPECT_EQ(ld(2).owner, (PartId{CompositionId("c-1"), 0}));
    EXPECT_FALSE(inventory.claim(composition(2, 1, 1, 2)));
}

TEST_F(HeadsTest, HeadsOfAnSldHaveOneLdEachAndTheirSizesAddUp) {
    const auto head = [](std::uint8_t number, Bytes size) {
        DeviceReading reading{kPort, DeviceKind::kSld, SerialNumber{0x200}, size, kCxlGranule, {}};
        for (std::uint16_t i = 0; i < 2; ++i)
            reading.lds.push_back(
                {LdId{i}, SerialNumber{number == i ? 0x201u + i : 0}, number == i ? size : Bytes{}});
        reading.multi_headed = MultiHeadedReading{2, number, {0, 1}};
        return reading;
    };
    for (const int round : {1, 2}) {
        ASSERT_TRUE(inventory.apply(switch_id(0), head(0, gibibytes(1)))) << round;
        ASSERT_TRUE(inventory.apply(switch_id(1), head(1, gibibytes(2)))) << round;
        EXPECT_EQ(inventory.pool().capacity, gibibytes(3));
        EXPECT_EQ(inventory.pool().largest_free, gibibytes(2));
    }
    SwitchReading fabric;
    fabric.vcss = {hardware.vcss[1]};
    fabric.vcss[0].vppbs[0].status = BindingStatus::kBoundPort;
    fabric.vcss[0].vppbs[0].port = kPort;
    inventory.apply(switch_id(1), fabric);
    EXPECT_TRUE(inventory.ld({DeviceId("sld-0000000000000200"), LdId{1}})->bound_at);
    EXPECT_FALSE(inventory.ld({DeviceId("sld-0000000000000200"), LdId{0}})->bound_at);
}

// Claims, bindings, readings in any order, heads that come and go, lies: the books are right after each.
class HeadsProperty : public HeadsTest, public ::testing::WithParamInterface<unsigned> {
  protected:
    unsigned pick(std::size_t n) { return static_cast<unsigned>(random() % n); }

    void claim() {
        const auto at = static_cast<std::uint8_t>(pick(2));
        Composition c = composition(next++, at, static_cast<std::uint8_t>(pick(kVppbs)),
                                    static_cast<std::uint16_t>(2u * at + pick(2)));
        const LogicalDevice* wanted = inventory.ld(c.parts[0].memory);
        if (wanted != nullptr && wanted->bound_at) return;  // placement would not offer it
        if (hardware.vcss[at].vppbs[c.parts[0].where.vppb].status != BindingStatus::kUnbound) return;
        if (inventory.claim(c)) live[c.id] = c;
    }
    void bind_one() {
        if (live.empty()) return;
        const Part& part = std::next(live.begin(), pick(live.size()))->second.parts[0];
        if (hardware.sizes[part.memory.ld.value].value == 0) return;
        bind(part.where.switch_id == switch_id(0) ? 0 : 1, part.where.vppb, part.memory.ld.value);
    }
    void end() {
        if (live.empty()) return;
        const auto one = std::next(live.begin(), pick(live.size()));
        const Part& part = one->second.parts[0];
        const std::size_t at = part.where.switch_id == switch_id(0) ? 0 : 1;
        hardware.vcss[at].vppbs[part.where.vppb].status = BindingStatus::kUnbound;
        inventory.apply(part.where.switch_id, 0, hardware.vcss[at].vppbs);
        inventory.release(one->first);
        live.erase(one);
    }
    void lose_head() {
        const std::size_t at = pick(2);
        for (Vppb& one : hardware.vcss[at].vppbs) one.status = BindingStatus::kUnbound;
        inventory.apply(switch_id(at), 0, hardware.vcss[at].vppbs);
        inventory.device_gone(switch_id(at), kPort);
    }
    void lie() {
        DeviceReading reading = hardware.head(static_cast<std::uint8_t>(pick(2)));
        reading.lds[pick(kLds)].size = gibibytes(pick(4));
        if (pick(2) == 0) reading.multi_headed->ld_heads[pick(kLds)] = static_cast<std::uint8_t>(pick(2));
        if (pick(4) == 0) reading.multi_headed.reset();
        const std::size_t at = pick(2);
        std::set<LdAddress> bound_elsewhere;
        for (std::uint16_t i = 0; i < kLds; ++i) {
            const LogicalDevice* one = inventory.ld({kDevice, LdId{i}});
            if (one != nullptr && one->bound_at && one->bound_at->switch_id != switch_id(at))
                bound_elsewhere.insert({kDevice, LdId{i}});
        }
        (void)inventory.apply(switch_id(at), reading);
        // Whatever one switch says, what the other has bound stays.
        for (const LdAddress& one : bound_elsewhere) EXPECT_TRUE(inventory.ld(one)->bound_at);
        hardware.show(inventory, static_cast<std::uint8_t>(at));
        hardware.show(inventory, static_cast<std::uint8_t>(1 - at));
    }

    std::mt19937 random{GetParam()};
    std::map<CompositionId, Composition> live;
    int next = 0;
};

TEST_P(HeadsProperty, BooksAreRightAfterEveryOperation) {
    show_both();
    for (int i = 0; i < 1000; ++i) {
        const unsigned choice = pick(16);
        if (choice < 5)
            claim();
        else if (choice < 9)
            bind_one();
        else if (choice < 12)
            end();
        else if (choice < 14)
            hardware.show(inventory, static_cast<std::uint8_t>(pick(2)));
        else if (choice < 15)
            lose_head();
        else
            lie();
        std::vector<Composition> compositions;
        for (const auto& [id, c] : live) compositions.push_back(c);
        ASSERT_EQ(violations(inventory, compositions), std::vector<std::string>{})
            << "after operation " << i << " of kind " << choice;
        const Pool pool = inventory.pool();
        ASSERT_TRUE(pool.capacity == gibibytes(2) || pool.capacity == Bytes{}) << format_bytes(pool.capacity);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HeadsProperty, ::testing::Range(1u, 21u));

}  // namespace
}  // namespace memtide::fm::heads

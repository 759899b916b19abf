#include "fabric-manager/model/inventory.h"

#include <algorithm>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

const SwitchId kSwitch("switch0");
constexpr std::uint8_t kPort = 2;
constexpr std::size_t kLds = 4;
constexpr std::size_t kVppbs = 3;
const DeviceId kDevice("mld-0000000000000100");

// What a switch would show: two hosts' virtual switches and one MLD of 2 GiB.
struct Hardware {
    std::vector<Vcs> vcss;
    std::vector<Bytes> sizes{mebibytes(256), mebibytes(256), mebibytes(512), Bytes{}};

    Hardware() {
        for (std::uint8_t id = 0; id < 2; ++id) {
            Vcs vcs;
            vcs.id = id;
            for (std::uint8_t vppb = 0; vppb < kVppbs; ++vppb) {
                vcs.vppbs.emplace_back();
                vcs.vppbs.back().id = vppb;
            }
            vcss.push_back(std::move(vcs));
        }
    }
    [[nodiscard]] SwitchReading fabric() const {
        SwitchReading reading;
        reading.ports.emplace_back();
        reading.ports.back().id = kPort;
        reading.vcss = vcss;
        return reading;
    }
    [[nodiscard]] DeviceReading device() const {
        DeviceReading reading{kPort, DeviceKind::kMld, SerialNumber{0x100}, gibibytes(2), kCxlGranule, {}};
        for (std::uint16_t i = 0; i < kLds; ++i)
            reading.lds.push_back({LdId{i}, SerialNumber{0x101u + i}, sizes[i]});
        return reading;
    }
    void show(Inventory& inventory) const {
        inventory.apply(kSwitch, fabric());
        ASSERT_TRUE(inventory.apply(kSwitch, device()));
    }
};

Inventory make_inventory() {
    Inventory inventory;
    inventory.add_switch(kSwitch, "fake");
    inventory.add_host(HostId("host0"), {{kSwitch, 0}});
    inventory.add_host(HostId("host1"), {{kSwitch, 1}});
    inventory.switch_up(kSwitch, Time{});
    return inventory;
}

Composition composition(int n, std::uint8_t vcs, std::uint8_t vppb, std::uint16_t ld) {
    Composition c;
    c.id = CompositionId(fmt::format("c-{}", n));
    c.host = HostId(vcs == 0 ? "host0" : "host1");
    Part part;
    part.memory = {kDevice, LdId{ld}};
    part.where = {kSwitch, vcs, vppb};
    part.port = kPort;
    c.parts = {part};
    return c;
}

class InventoryTest : public ::testing::Test {
  protected:
    void SetUp() override { hardware.show(inventory); }
    void bind(std::uint8_t vcs, std::uint8_t vppb, std::uint16_t ld) {
        Vppb& one = hardware.vcss[vcs].vppbs[vppb];
        one.status = BindingStatus::kBoundLd;
        one.port = kPort;
        one.ld = LdId{ld};
        inventory.apply(kSwitch, vcs, hardware.vcss[vcs].vppbs);
    }
    LdUse use(std::uint16_t ld) { return inventory.ld({kDevice, LdId{ld}})->use; }

    Inventory inventory = make_inventory();
    Hardware hardware;
};

TEST_F(InventoryTest, LdIsClaimedByOneCompositionOnly) {
    ASSERT_TRUE(inventory.claim(composition(1, 0, 0, 0)));
    EXPECT_TRUE(inventory.claim(composition(1, 0, 0, 0)));
    EXPECT_EQ(inventory.claim(composition(2, 1, 0, 0)).error().code, ErrorCode::kConflict);
    EXPECT_EQ(inventory.claim(composition(2, 0, 0, 1)).error().code, ErrorCode::kConflict);
    EXPECT_EQ(use(0), LdUse::kReserved);
    inventory.release(CompositionId("c-1"));
    EXPECT_TRUE(inventory.claim(composition(2, 1, 0, 0)));
}

TEST_F(InventoryTest, ClaimsFromBeforeTheFirstReadingHoldAfterIt) {
    Inventory fresh = make_inventory();
    ASSERT_TRUE(fresh.claim(composition(1, 0, 0, 0)));
    EXPECT_FALSE(fresh.claim(composition(2, 1, 1, 0)));
    hardware.show(fresh);
    EXPECT_EQ(fresh.ld({kDevice, LdId{0}})->owner, (PartId{CompositionId("c-1"), 0}));
    EXPECT_EQ(fresh.vppb({kSwitch, 0, 0})->owner, (PartId{CompositionId("c-1"), 0}));
}

TEST_F(InventoryTest, BoundMemoryIsNotClean) {
    inventory.set_clean({kDevice, LdId{1}}, true);
    ASSERT_TRUE(inventory.ld({kDevice, LdId{1}})->clean);
    bind(0, 0, 1);
    EXPECT_FALSE(inventory.ld({kDevice, LdId{1}})->clean);
    EXPECT_EQ(use(1), LdUse::kBound);
}

TEST_F(InventoryTest, ResizedMemoryIsNotClean) {
    inventory.set_clean({kDevice, LdId{1}}, true);
    hardware.sizes[1] = mebibytes(512);
    hardware.show(inventory);
    EXPECT_FALSE(inventory.ld({kDevice, LdId{1}})->clean);
}

TEST_F(InventoryTest, BindingWhereNoHostIsConfiguredIsForeign) {
    Inventory other;
    other.add_switch(kSwitch, "fake");
    hardware.vcss[0].vppbs[0].status = BindingStatus::kBoundLd;
    hardware.vcss[0].vppbs[0].port = kPort;
    hardware.vcss[0].vppbs[0].ld = LdId{0};
    hardware.show(other);
    EXPECT_EQ(other.ld({kDevice, LdId{0}})->use, LdUse::kForeign);
    EXPECT_EQ(other.pool().foreign, mebibytes(256));
}

TEST_F(InventoryTest, DeviceThatLeavesIsNoPartOfThePool) {
    EXPECT_EQ(inventory.pool().capacity, gibibytes(2));
    inventory.device_gone(kSwitch, kPort);
    EXPECT_EQ(inventory.pool().capacity, Bytes{});
    EXPECT_FALSE(inventory.device(kDevice)->present);
}

TEST_F(InventoryTest, OneSerialNumberOnTwoPortsIsRefused) {
    DeviceReading twin = hardware.device();
    twin.port = 3;
    EXPECT_EQ(inventory.apply(kSwitch, twin).error().code, ErrorCode::kAlreadyExists);
}

TEST_F(InventoryTest, CarveHoldsItsLdsUntilItIsDone) {
    Composition c = composition(1, 0, 0, 0);
    c.parts[0].carve = Carve{{{LdId{0}, mebibytes(256)}, {LdId{1}, mebibytes(256)}},
                             {{LdId{0}, mebibytes(512)}, {LdId{1}, Bytes{}}},
                             false};
    ASSERT_TRUE(inventory.claim(c));
    EXPECT_EQ(use(1), LdUse::kReserved);
    EXPECT_FALSE(inventory.claim(composition(2, 1, 0, 1)));
    EXPECT_EQ(unallocated(*inventory.device(kDevice)), mebibytes(2048 - 512 - 512));
    EXPECT_EQ(inventory.sums(*inventory.device(kDevice)).composed, mebibytes(512));
    inventory.resize({kDevice, LdId{0}}, mebibytes(512), {});
    inventory.resize({kDevice, LdId{1}}, Bytes{}, {});
    inventory.carved({c.id, 0});
    EXPECT_EQ(use(1), LdUse::kUnallocated);
    EXPECT_EQ(use(0), LdUse::kReserved);
}

TEST_F(InventoryTest, RefusedCarveCountsUntilTheDeviceHasOtherLds) {
    const auto most = [&] { return inventory.pool().largest_free; };
    ASSERT_EQ(most(), gibibytes(2));
    const auto refuse = [&](Bytes size) { inventory.note_refused_carve({kDevice, LdId{0}}, size); };
    refuse(mebibytes(1536));
    EXPECT_EQ(most(), mebibytes(1280));
    refuse(gibibytes(2));  // which says less
    EXPECT_EQ(most(), mebibytes(1280));
    EXPECT_EQ(inventory.pool().stranded, Bytes{});
    EXPECT_EQ(inventory.pool().free, gibibytes(2));
    hardware.show(inventory);
    EXPECT_EQ(most(), mebibytes(1280));
    hardware.sizes[3] = mebibytes(256);
    hardware.show(inventory);
    EXPECT_EQ(most(), gibibytes(2));
    refuse(mebibytes(1536));
    inventory.resize({kDevice, LdId{3}}, Bytes{}, {});
    EXPECT_EQ(most(), gibibytes(2));
    refuse(mebibytes(1536));
    inventory.device_gone(kSwitch, kPort);
    hardware.show(inventory);
    EXPECT_EQ(most(), gibibytes(2));
    refuse(mebibytes(1536));
    inventory.forget_clean(kSwitch);
    EXPECT_EQ(most(), gibibytes(2));
}

TEST_F(InventoryTest, RefusedCarveSaysNothingOfWhatIsFreeLater) {
    Composition c = composition(1, 0, 0, 2);
    ASSERT_TRUE(inventory.claim(c));
    inventory.note_refused_carve({kDevice, LdId{0}}, mebibytes(1024));
    EXPECT_EQ(inventory.pool().largest_free, mebibytes(768));
    inventory.release(c.id);
    EXPECT_EQ(inventory.pool().largest_free, gibibytes(2));
    ASSERT_TRUE(inventory.claim(c));
    EXPECT_EQ(inventory.pool().largest_free, mebibytes(768));
}

TEST_F(InventoryTest, WhatAPartGivesUpIsKeptFromOthersUntilThatIsDurable) {
    Composition c = composition(1, 0, 0, 0);
    c.parts[0].carve =
        Carve{{{LdId{0}, mebibytes(256)}, {LdId{1}, mebibytes(256)}, {LdId{2}, mebibytes(512)}},
              {{LdId{0}, mebibytes(1024)}, {LdId{1}, Bytes{}}, {LdId{2}, Bytes{}}},
              false};
    ASSERT_TRUE(inventory.claim(c));
    inventory.release(c.id);
    // One of its LDs and its vPPB are handed on.
    Composition next = composition(1, 0, 0, 1);
    next.parts[0].number = 1;
    ASSERT_TRUE(inventory.claim(next, next.parts[0]));
    inventory.keep(c, c.parts[0]);
    EXPECT_EQ(inventory.ld({kDevice, LdId{1}})->owner, (PartId{c.id, 1}));
    EXPECT_EQ(inventory.vppb({kSwitch, 0, 0})->owner, (PartId{c.id, 1}));
    EXPECT_FALSE(inventory.claim(composition(2, 1, 0, 0)));
    EXPECT_FALSE(inventory.claim(composition(2, 1, 0, 2)));
    EXPECT_EQ(inventory.pool().composed, mebibytes(1024));
    EXPECT_EQ(inventory.pool().capacity, gibibytes(2));
    // Durable.
    inventory.release(PartId{c.id, 0});
    EXPECT_EQ(inventory.ld({kDevice, LdId{1}})->owner, (PartId{c.id, 1}));
    EXPECT_TRUE(inventory.claim(composition(2, 1, 0, 0)));
    // Or not: all as it was.
    inventory.release(CompositionId("c-2"));
    inventory.keep(c, c.parts[0]);
    inventory.release(PartId{c.id, 1});
    ASSERT_TRUE(inventory.claim(c));
    EXPECT_EQ(inventory.ld({kDevice, LdId{1}})->owner, (PartId{c.id, 0}));
    EXPECT_EQ(inventory.vppb({kSwitch, 0, 0})->owner, (PartId{c.id, 0}));
}

// Random claims, releases, bindings, unbindings, resizings, readings, losses: whatever comes, the books are
// right.
class InventoryProperty : public ::testing::TestWithParam<unsigned> {
  protected:
    unsigned pick(std::size_t n) { return static_cast<unsigned>(random() % n); }

    void claim() {
        Composition c =
            composition(next++, static_cast<std::uint8_t>(pick(2)), static_cast<std::uint8_t>(pick(kVppbs)),
                        static_cast<std::uint16_t>(pick(kLds)));
        const LogicalDevice* ld = inventory.ld(c.parts[0].memory);
        const bool bound_elsewhere = ld->bound_at && *ld->bound_at != c.parts[0].where;
        const Vppb* vppb = inventory.vppb(c.parts[0].where);
        const bool vppb_taken = vppb->status != BindingStatus::kUnbound && ld->bound_at != c.parts[0].where;
        if (bound_elsewhere || vppb_taken || ld->quarantined) return;  // placement would not offer it
        if (inventory.claim(c)) live[c.id] = c;
    }
    void release() {
        if (live.empty()) return;
        const auto one = std::next(live.begin(), pick(live.size()));
        inventory.release(one->first);
        live.erase(one);
    }
    void bind() {
        if (live.empty()) return;
        const Composition& c = std::next(live.begin(), pick(live.size()))->second;
        if (hardware.sizes[c.parts[0].memory.ld.value].value == 0) return;
        Vppb& one = hardware.vcss[c.parts[0].where.vcs].vppbs[c.parts[0].where.vppb];
        one.status = BindingStatus::kBoundLd;
        one.port = kPort;
        one.ld = c.parts[0].memory.ld;
        inventory.apply(kSwitch, c.parts[0].where.vcs, hardware.vcss[c.parts[0].where.vcs].vppbs);
    }
    void unbind() {
        const auto vcs = static_cast<std::uint8_t>(pick(2));
        Vppb& one = hardware.vcss[vcs].vppbs[pick(kVppbs)];
        one.status = BindingStatus::kUnbound;
        inventory.apply(kSwitch, vcs, hardware.vcss[vcs].vppbs);
    }
    void resize() {
        const auto ld = static_cast<std::uint16_t>(pick(kLds));
        if (inventory.ld({kDevice, LdId{ld}})->bound_at) return;
        Bytes others;
        for (std::size_t i = 0; i < kLds; ++i)
            if (i != ld) others += hardware.sizes[i];
        hardware.sizes[ld] = kCxlGranule * pick((gibibytes(2) - others) / kCxlGranule + 1);
        if (pick(2) == 0)
            inventory.resize({kDevice, LdId{ld}}, hardware.sizes[ld], {});
        else
            hardware.show(inventory);
    }
    void mark() {
        const LdAddress ld{kDevice, LdId{static_cast<std::uint16_t>(pick(kLds))}};
        if (pick(4) == 0)
            inventory.set_quarantined(ld, pick(2) == 0);
        else
            inventory.set_clean(ld, pick(2) == 0);
    }
    void pull() {
        for (Vcs& vcs : hardware.vcss)
            for (Vppb& one : vcs.vppbs) one.status = BindingStatus::kUnbound;
        inventory.device_gone(kSwitch, kPort);
        hardware.show(inventory);
    }

    std::mt19937 random{GetParam()};
    Inventory inventory = make_inventory();
    Hardware hardware;
    std::map<CompositionId, Composition> live;
    int next = 0;
};

TEST_P(InventoryProperty, HoldsAfterEveryOperation) {
    hardware.show(inventory);
    for (int i = 0; i < 2000; ++i) {
        const unsigned choice = pick(20);
        if (choice < 6)
            claim();
        else if (choice < 9)
            release();
        else if (choice < 13)
            bind();
        else if (choice < 15)
            unbind();
        else if (choice < 17)
            resize();
        else if (choice < 18)
            mark();
        else if (choice < 19)
            hardware.show(inventory);
        else if (pick(10) == 0)
            pull();
        std::vector<Composition> compositions;
        for (const auto& [id, c] : live) compositions.push_back(c);
        std::vector<std::string> wrong = violations(inventory, compositions);
        // An LD that stays bound after its composition was released here is somebody else's then.
        std::erase_if(wrong,
                      [](const std::string& text) { return text.find("different owners") != text.npos; });
        ASSERT_EQ(wrong, std::vector<std::string>{}) << "after operation " << i << " of kind " << choice;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, InventoryProperty, ::testing::Range(1u, 21u));

TEST_F(InventoryTest, ViolationsAreFound) {
    Composition first = composition(1, 0, 0, 0);
    ASSERT_TRUE(inventory.claim(first));
    EXPECT_TRUE(violations(inventory, {first}).empty());
    EXPECT_FALSE(violations(inventory, {first, composition(2, 1, 0, 0)}).empty());
    EXPECT_FALSE(violations(inventory, {}).empty());
    bind(1, 1, 0);
    EXPECT_FALSE(violations(inventory, {first}).empty());
}

}  // namespace
}  // namespace memtide::fm

#include "fabric-manager/model/fragmentation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {
namespace {

Bytes units(std::uint64_t n) { return kCxlGranule * n; }

class FragmentationTest : public ::testing::Test {
  protected:
    void add_switch(const std::string& id) {
        inventory.add_switch(SwitchId(id), "fake");
        inventory.switch_up(SwitchId(id), Time{});
    }
    void add_host(const std::string& id, const std::vector<std::string>& at) {
        std::vector<HostAttachment> attach;
        for (const std::string& one : at) attach.push_back({SwitchId(one), next_vcs++});
        inventory.add_host(HostId(id), std::move(attach));
    }
    // An MLD whose LDs have these sizes; of the last `used` of them somebody has the memory.
    void add_mld(const std::string& at, const std::vector<std::uint64_t>& sizes, std::size_t used = 0) {
        const SerialNumber serial{next_serial += 0x100};
        DeviceReading device{next_port++, DeviceKind::kMld, serial, {}, kCxlGranule, {}};
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            device.size += units(sizes[i]);
            device.lds.push_back(
                {LdId{static_cast<std::uint16_t>(i)}, {serial.value + 1 + i}, units(sizes[i])});
        }
        const DeviceId id = inventory.apply(SwitchId(at), device).value();
        for (std::size_t i = sizes.size() - used; i < sizes.size(); ++i)
            inventory.set_quarantined({id, LdId{static_cast<std::uint16_t>(i)}}, true);
    }

    Inventory inventory;
    std::uint8_t next_port = 2;
    std::uint8_t next_vcs = 0;
    std::uint64_t next_serial = 0x1000;
};

TEST_F(FragmentationTest, EmptyPoolIsNotFragmented) {
    EXPECT_EQ(fragmentation(inventory).total, Scatter{});
    add_switch("s0");
    add_host("h0", {"s0"});
    for (int i = 0; i < 10; ++i) add_mld("s0", {2, 2});
    const Scatter total = fragmentation(inventory).total;
    EXPECT_EQ(total.free, units(40));
    EXPECT_EQ(total.largest_ld, units(4));
    EXPECT_EQ(total.largest_composition, units(32));  // no more than eight parts
    EXPECT_EQ(total.fragmentation(), 0);
}

TEST_F(FragmentationTest, FreeMemoryInManyPlacesIsWorthLess) {
    add_switch("s0");
    add_host("h0", {"s0"});
    for (int i = 0; i < 16; ++i) add_mld("s0", {1, 3}, 1);
    const Scatter total = fragmentation(inventory).total;
    EXPECT_EQ(total.free, units(16));
    EXPECT_EQ(total.largest_composition, units(8));
    EXPECT_EQ(total.attainable, units(16));  // four devices would hold it
    EXPECT_DOUBLE_EQ(total.fragmentation(), 0.5);
}

TEST_F(FragmentationTest, DevicesThatRefuseToCarveAreFragmented) {
    add_switch("s0");
    add_host("h0", {"s0"});
    add_mld("s0", {1, 1, 1, 1});
    EXPECT_EQ(fragmentation(inventory).total.fragmentation(), 0);
    const DeviceId device = inventory.devices().begin()->first;
    inventory.note_refused_carve({device, LdId{0}}, units(3));
    const Scatter total = fragmentation(inventory).total;
    EXPECT_EQ(total.largest_ld, units(2));
    EXPECT_EQ(total.largest_composition, units(2));
    EXPECT_DOUBLE_EQ(total.fragmentation(), 0.5);
}

TEST_F(FragmentationTest, FullPoolIsNotFragmented) {
    add_switch("s0");
    add_host("h0", {"s0"});
    add_mld("s0", {2}, 1);
    EXPECT_EQ(fragmentation(inventory).total.fragmentation(), 0);
}

TEST_F(FragmentationTest, HostsWithTheWidestReachCount) {
    add_switch("s0");
    add_switch("s1");
    add_mld("s0", {2});
    add_mld("s1", {3});
    add_host("h0", {"s0"});
    EXPECT_EQ(fragmentation(inventory).total.largest_composition, units(2));
    add_host("h1", {"s0", "s1"});
    EXPECT_EQ(fragmentation(inventory).total.largest_composition, units(5));
    const std::vector<SwitchScatter> switches = fragmentation(inventory).switches;
    ASSERT_EQ(switches.size(), 2U);
    EXPECT_EQ(switches[1].id, SwitchId("s1"));
    EXPECT_EQ(switches[1].scatter.largest_composition, units(3));
}

TEST_F(FragmentationTest, MemoryBehindASwitchThatIsDownIsOutOfReach) {
    add_switch("s0");
    add_host("h0", {"s0"});
    add_mld("s0", {2});
    inventory.switch_down(SwitchId("s0"), "no answer");
    const Scatter total = fragmentation(inventory).total;
    EXPECT_EQ(total.largest_composition, Bytes{});
    EXPECT_EQ(total.fragmentation(), 1);
}

TEST_F(FragmentationTest, MultiHeadedDeviceCountsOnceForWhoReachesItTwice) {
    add_switch("s0");
    add_switch("s1");
    add_host("h0", {"s0", "s1"});
    for (const std::uint8_t head : {std::uint8_t{0}, std::uint8_t{1}}) {
        DeviceReading device{2, DeviceKind::kMld, {0x100}, units(4), kCxlGranule, {}};
        device.lds = {{LdId{0}, {0x101}, units(1)}, {LdId{1}, {0x102}, units(3)}};
        device.multi_headed = MultiHeadedReading{2, head, {0, 1}};
        ASSERT_TRUE(inventory.apply(SwitchId(head == 0 ? "s0" : "s1"), device));
    }
    const Fragmentation found = fragmentation(inventory);
    EXPECT_EQ(found.total.free, units(4));
    EXPECT_EQ(found.total.largest_composition, units(3));  // one part a device
    EXPECT_EQ(found.total.attainable, units(4));
    EXPECT_EQ(found.switches[0].scatter.largest_composition, units(1));
}

}  // namespace
}  // namespace memtide::fm

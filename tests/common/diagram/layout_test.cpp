#include "common/diagram/layout.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/common/diagram/fabrics.h"

namespace memtide::diagram {
namespace {

bool overlap(const Box& one, const Box& other) {
    return one.x < other.right() && other.x < one.right() && one.y < other.bottom() && other.y < one.bottom();
}

std::vector<Box> outer_boxes(const Layout& layout) {
    std::vector<Box> boxes = layout.hosts;
    for (const SwitchPlace& place : layout.switches) boxes.push_back(place.box);
    for (const DevicePlace& place : layout.devices) boxes.push_back(place.box);
    return boxes;
}

void expect_tidy(const Fabric& fabric) {
    const Layout layout = lay_out(fabric);
    const std::vector<Box> boxes = outer_boxes(layout);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        EXPECT_GE(boxes[i].x, 0);
        EXPECT_LE(boxes[i].right(), layout.width);
        EXPECT_LE(boxes[i].bottom(), layout.height);
        for (std::size_t j = i + 1; j < boxes.size(); ++j)
            EXPECT_FALSE(overlap(boxes[i], boxes[j])) << i << " " << j;
    }
    for (const SwitchPlace& place : layout.switches)
        for (std::size_t i = 0; i < place.lanes.size(); ++i) {
            EXPECT_GE(place.lanes[i].box.x, place.box.x);
            EXPECT_LE(place.lanes[i].box.right(), place.box.right());
            for (std::size_t j = i + 1; j < place.lanes.size(); ++j)
                EXPECT_FALSE(overlap(place.lanes[i].box, place.lanes[j].box));
        }
    for (const DevicePlace& place : layout.devices)
        for (std::size_t i = 0; i < place.lds.size(); ++i) {
            EXPECT_GE(place.lds[i].x, place.box.x);
            EXPECT_LE(place.lds[i].right(), place.box.right());
            EXPECT_LE(place.lds[i].bottom(), place.box.bottom());
            for (std::size_t j = i + 1; j < place.lds.size(); ++j)
                EXPECT_FALSE(overlap(place.lds[i], place.lds[j]));
        }
}

TEST(DiagramLayout, NothingLiesOnAnythingElse) {
    for (const unsigned hosts : {1U, 2U, 5U, 40U})
        for (const unsigned switches : {1U, 3U, 12U}) expect_tidy(test::fabric_of(hosts, switches));
}

TEST(DiagramLayout, HostsAreAboveSwitchesAndTheseAboveDevices) {
    const Layout layout = lay_out(test::fabric_of(3, 2));
    for (const SwitchPlace& place : layout.switches) {
        for (const Box& host : layout.hosts) EXPECT_LT(host.bottom(), place.box.y);
        for (const DevicePlace& device : layout.devices) EXPECT_GT(device.box.y, place.box.bottom());
    }
}

TEST(DiagramLayout, LdsOfAMultiHeadedDeviceStandUnderTheirHead) {
    Fabric fabric;
    Device& device = fabric.devices.emplace_back();
    device.name = "mhd0";
    device.heads = {0, 1};
    for (unsigned ld = 0; ld < 6; ++ld) {
        device.lds.emplace_back().name = std::to_string(ld);
        device.lds.back().head = ld < 3 ? 0 : 1;
    }
    const Layout layout = lay_out(fabric);
    const DevicePlace& place = layout.devices[0];
    for (unsigned ld = 0; ld < 6; ++ld) {
        const double near = std::abs(place.lds[ld].centre() - place.heads[ld < 3 ? 0 : 1].centre());
        const double far = std::abs(place.lds[ld].centre() - place.heads[ld < 3 ? 1 : 0].centre());
        EXPECT_LT(near, far) << ld;
    }
    expect_tidy(fabric);
}

TEST(DiagramLayout, OfManyVppbsThoseInUseAreShown) {
    Fabric fabric = test::fabric_of(1, 1);
    Vcs& vcs = fabric.switches[0].vcss[0];
    for (unsigned id = 2; id < 255; ++id) vcs.vppbs.push_back({id, "", ""});
    vcs.vppbs[200] = {200, "dev0", "1"};
    const Layout layout = lay_out(fabric);
    const VcsLane& lane = layout.switches[0].lanes[0];
    ASSERT_LE(lane.slots.size(), 16U);
    EXPECT_TRUE(std::ranges::any_of(lane.slots, [](const Slot& slot) { return slot.vppb == 200; }));
    EXPECT_EQ(lane.slots.back().left_out + lane.slots.size() - 1, 255U);
}

TEST(DiagramLayout, EmptyFabricHasASizeToo) {
    const Layout layout = lay_out({});
    EXPECT_GE(layout.width, 0);
    EXPECT_GT(layout.height, 0);
}

}  // namespace
}  // namespace memtide::diagram

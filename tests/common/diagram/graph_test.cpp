#include "common/diagram/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/diagram/fabrics.h"

namespace memtide::diagram {
namespace {

using testing::ElementsAre;

TEST(DiagramGraph, WhatNothingConnectsIsApart) {
    Fabric fabric = test::fabric_of(2, 1);
    fabric.hosts.push_back({.name = "alone", .detail = {}, .direct = {}});
    const auto parts = parts_of(fabric);
    ASSERT_EQ(parts.size(), 2U);
    EXPECT_THAT(parts[0].hosts, ElementsAre(0, 1));
    EXPECT_THAT(parts[0].devices, ElementsAre(0));
    EXPECT_THAT(parts[1].hosts, ElementsAre(2));
}

TEST(DiagramGraph, LinesThatNeedNotCrossDoNot) {
    // Two switches, whose hosts and devices are listed the other way round.
    Fabric fabric;
    for (const char* name : {"b", "a"}) fabric.hosts.push_back({.name = name, .detail = {}, .direct = {}});
    for (const char* name : {"db", "da"}) fabric.devices.emplace_back().name = name;
    fabric.devices.emplace_back().name = "shared";
    for (const std::string name : {"a", "b"}) {
        Switch& one = fabric.switches.emplace_back();
        one.ports = {{.id = 0, .host = name, .device = {}},
                     {.id = 1, .host = {}, .device = "d" + name},
                     {.id = 2, .host = {}, .device = "shared"}};
    }
    const auto parts = parts_of(fabric);
    ASSERT_EQ(parts.size(), 1U);
    const Part& part = parts[0];
    const bool a_is_left = part.switches[0] == 0;
    EXPECT_EQ(part.hosts[0], a_is_left ? 1U : 0U);
    EXPECT_EQ(part.devices[0], a_is_left ? 1U : 0U);
    EXPECT_EQ(part.devices[1], 2U);
}

TEST(DiagramGraph, NamesThatLeadNowhereAreNoLines) {
    Fabric fabric = test::fabric_of(1, 1);
    fabric.switches[0].ports.push_back({.id = 7, .host = "nobody", .device = "nothing"});
    fabric.networks.push_back({"rdma0", {"host0", "nobody"}});
    EXPECT_EQ(parts_of(fabric).size(), 1U);
}

}  // namespace
}  // namespace memtide::diagram

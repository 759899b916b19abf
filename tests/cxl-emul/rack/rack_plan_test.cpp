#include "cxl-emul/rack/rack_plan.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/rack/loopback_address.h"

namespace memtide::emul {
namespace {

using testing::HasSubstr;

Topology demo() { return load_topology(MEMTIDE_CONFIG "/topologies/one-switch-one-mld.yaml").value(); }

TEST(RackPlan, EveryTopologyToStartFromLoadsAndEveryHostCanBePlanned) {
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(MEMTIDE_CONFIG "/topologies")) {
        const auto topology = load_topology(file.path());
        ASSERT_TRUE(topology) << topology.error().message;
        EXPECT_FALSE(topology->hosts.empty()) << file.path();
        for (const auto& host : topology->hosts) {
            const auto plan = plan_host(*topology, host, {}, "/run/x");
            EXPECT_TRUE(plan) << plan.error().message;
        }
        ++files;
    }
    EXPECT_GE(files, 3);
}

TEST(RackPlan, HostGetsThePortsOfItsVcsAndRoomForAllMemory) {
    const auto topology = demo();
    const auto plan = plan_host(topology, topology.hosts[1], {}, "/run/x").value();
    ASSERT_EQ(plan.vcss.size(), 1U);
    EXPECT_EQ(plan.vcss[0].vcs, 1);
    EXPECT_EQ(plan.vcss[0].vppbs, 4);
    EXPECT_GE(plan.window, gibibytes(1));
    EXPECT_TRUE(plan.relay.empty());
}

TEST(RackPlan, ManagerMeansARelay) {
    const auto topology = demo();
    RackSettings settings;
    settings.program = "/bin/memtide-cxl-emul";
    settings.manager = "127.0.0.1:8080";
    EXPECT_THAT(plan_host(topology, topology.hosts[0], settings, "/run/x")->relay,
                testing::ElementsAre("/bin/memtide-cxl-emul", "relay", "127.0.0.1:8080"));
}

TEST(RackPlan, HostsOwnDeviceIsThereFromPowerOn) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/direct-one-host.yaml").value();
    const auto plan = plan_host(topology, topology.hosts[0], {}, "/run/x").value();
    ASSERT_EQ(plan.direct.size(), 1U);
    EXPECT_EQ(plan.direct[0].media, "/dev/shm/memtide-direct-memory0.media");
    EXPECT_TRUE(plan.vcss.empty());
}

TEST(RackPlan, HostHasTheNumaNodesOfTheFile) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/two-tiers.yaml").value();
    const auto plan = plan_host(topology, topology.hosts[0], {}, "/run/x").value();
    ASSERT_EQ(plan.numa_nodes.size(), 1U);
    EXPECT_EQ(plan.numa_nodes[0].size, mebibytes(768));
    EXPECT_EQ(plan.numa_nodes[0].latency_ns, 250U);
    EXPECT_EQ(plan.numa_nodes[0].bandwidth, gibibytes(16));
}

TEST(RackPlan, HeadOfAHostGivesItItsLdsWhereTheyAreInTheDevice) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/mhd-without-switch.yaml").value();
    const auto first = plan_host(topology, topology.hosts[0], {}, "/run/x/hosts/host0").value();
    const auto second = plan_host(topology, topology.hosts[1], {}, "/run/x/hosts/host1").value();
    ASSERT_EQ(first.direct.size(), 1U);
    ASSERT_EQ(second.direct.size(), 2U);
    EXPECT_EQ(first.direct[0].media, "/dev/shm/memtide-mhd-direct-mhd0.media");
    EXPECT_EQ(second.direct[1].media, first.direct[0].media);
    EXPECT_EQ(first.direct[0].offset, Bytes{});
    EXPECT_EQ(first.direct[0].size, mebibytes(512));
    EXPECT_EQ(second.direct[0].offset, mebibytes(512));
    EXPECT_EQ(second.direct[1].offset, mebibytes(768));
    EXPECT_EQ(second.direct[1].name, "mhd0-2");
    EXPECT_EQ(second.direct[1].serial.value, 0x4d54000400000003U);
    EXPECT_THAT(find_device(topology, "mhd0:1").error().message,
                HasSubstr("mhd0 is on a root port of host0, there from power-on"));
}

TEST(RackPlan, NetworkIsOneCableWithAnEndInEachHost) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/rdma-two-hosts.yaml").value();
    const auto first = plan_host(topology, topology.hosts[0], {}, "/run/x/hosts/host0").value();
    const auto second = plan_host(topology, topology.hosts[1], {}, "/run/x/hosts/host1").value();
    ASSERT_EQ(first.networks.size(), 1U);
    ASSERT_EQ(second.networks.size(), 1U);
    const NetworkPort& one = first.networks[0];
    const NetworkPort& other = second.networks[0];
    EXPECT_EQ(one.socket, "/run/x/hosts/host0/rdma0.net");
    EXPECT_EQ(one.socket, other.socket);
    EXPECT_TRUE(one.listens);
    EXPECT_FALSE(other.listens);
    EXPECT_NE(one.mac, other.mac);
    EXPECT_EQ(one.address, "10.77.0.1/24");
    EXPECT_EQ(one.peer, "host1");
    EXPECT_EQ(one.peer_address + "/24", other.address);
    EXPECT_EQ(other.peer_address + "/24", one.address);
}

TEST(RackPlan, NetworkWhoseSocketCannotBeIsRefusedWithItsPath) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/rdma-two-hosts.yaml").value();
    const auto plan = plan_host(topology, topology.hosts[0], {}, "/" + std::string(100, 'x') + "/host0");
    EXPECT_THAT(plan.error().message, HasSubstr("/rdma0.net is too long for a unix socket"));
}

TEST(RackPlan, MonitorSocketThatCannotBeIsLeftOut) {
    const auto topology = demo();
    EXPECT_EQ(plan_host(topology, topology.hosts[0], {}, std::string(120, 'x'))->monitor_socket, "");
}

TEST(FindDevice, LdOfAnMldIsAPortAndALd) {
    const auto topology = demo();
    const auto place = find_device(topology, "mld0:3").value();
    EXPECT_EQ(place.in->name.value, "switch0");
    EXPECT_EQ(place.port, 2);
    EXPECT_EQ(place.ld, 3);
}

TEST(FindDevice, SldIsTheWholePort) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/one-host-one-sld.yaml").value();
    EXPECT_EQ(find_device(topology, "sld0")->ld, 0xffff);
    EXPECT_EQ(find_device(topology, "sld0:0").error().message, "sld0 is an SLD: it has no LDs");
}

TEST(FindDevice, MistakesNameWhatThereIs) {
    const auto topology = demo();
    EXPECT_EQ(find_device(topology, "mld1:0").error().message, "no device named mld1; there is mld0");
    for (const char* name : {"mld0", "mld0:", "mld0:4", "mld0:x", "mld0:1x", "mld0:-1"})
        EXPECT_THAT(find_device(topology, name).error().message, HasSubstr("mld0:0 to mld0:3")) << name;
}

TEST(FindDevice, WhatNoSwitchHasCannotBeBound) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/direct-one-host.yaml").value();
    EXPECT_THAT(find_device(topology, "memory0").error().message,
                HasSubstr("memory0 is on a root port of host0, there from power-on"));
    EXPECT_EQ(find_device(topology, "mld0").error().message,
              "no device named mld0; no switch of this topology has any");
}

TEST(FindDevice, AnLdOfAMultiHeadedDeviceIsWhereItsHeadIs) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/two-switches-one-mhd.yaml").value();
    const auto first = find_device(topology, "mhd0:1", "host0").value();
    EXPECT_EQ(first.in->name.value, "switch0");
    EXPECT_EQ(first.ld, 1);
    const auto second = find_device(topology, "mhd0:3", "host1").value();
    EXPECT_EQ(second.in->name.value, "switch1");
    EXPECT_EQ(second.port, 2);
    EXPECT_EQ(second.ld, 3);
    EXPECT_EQ(find_vcs(topology, "host1", second.in)->vcs, 0);
}

TEST(FindDevice, AnLdOfTheWrongHeadIsRefusedWithWhatTheHostReaches) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/two-switches-one-mhd.yaml").value();
    EXPECT_EQ(
        find_device(topology, "mhd0:0", "host1").error().message,
        "mhd0:0 is behind head 0 of mhd0, at port 2 of switch0, where host1 is not attached; it reaches "
        "mhd0:3, mhd0:4");
    EXPECT_THAT(find_device(topology, "mhd0:6", "host1").error().message, HasSubstr("mhd0:0 to mhd0:5"));
}

TEST(FindDevice, AHeadOfAMultiHeadedSldIsTheOneWhereTheHostIs) {
    auto topology = load_topology(MEMTIDE_CONFIG "/topologies/two-switches-one-mhd.yaml").value();
    for (auto& in : topology.switches)
        for (auto& device : in.devices) {
            device.kind = DeviceKind::kSld;
            device.lds = {gibibytes(1), gibibytes(1)};
            device.ld_heads = {0, 1};
        }
    const auto place = find_device(topology, "mhd0", "host1").value();
    EXPECT_EQ(place.in->name.value, "switch1");
    EXPECT_EQ(place.ld, 0xffff);
    EXPECT_EQ(find_device(topology, "mhd0:1", "host1")->in->name.value, "switch1");
    EXPECT_THAT(find_device(topology, "mhd0:0", "host1").error().message, HasSubstr("not attached"));
    EXPECT_THAT(find_device(topology, "mhd0:2", "host1").error().message, HasSubstr("mhd0:0 to mhd0:1"));
}

TEST(FindVcs, HostThatIsNotThereIsNotFound) {
    const auto topology = demo();
    EXPECT_EQ(find_vcs(topology, "host1", nullptr)->vcs, 1);
    EXPECT_EQ(find_vcs(topology, "host7", nullptr).error().message,
              "no host named host7; there is host0, host1");
}

TEST(LoopbackAddress, TakesLoopbackOnly) {
    EXPECT_EQ(parse_loopback_address("127.0.0.1:8080")->port, 8080);
    EXPECT_EQ(parse_loopback_address("localhost:1")->host, "127.0.0.1");
    for (const char* text : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "10.0.0.1:80",
                             "0.0.0.0:80", "example.org:80", "127.0.0.1:80x", ":80"})
        EXPECT_EQ(parse_loopback_address(text).error().code, ErrorCode::kInvalidArgument) << text;
}

}  // namespace
}  // namespace memtide::emul

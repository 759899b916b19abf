#include "cxl-emul/hosts/fleet_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

FleetOptions fleet_of(std::uint64_t hosts, std::uint64_t switches = 0) {
    FleetOptions options;
    options.count = hosts;
    options.switches = switches;
    return options;
}

TEST(FleetPlan, EachHostHasAVirtualSwitchOfItsOwn) {
    const auto topology = plan_fleet(fleet_of(10, 3));
    ASSERT_TRUE(topology.has_value());
    ASSERT_EQ(topology->switches.size(), 3U);
    std::set<std::string> hosts;
    for (const SwitchConfig& one : topology->switches) {
        EXPECT_EQ(one.devices.size(), 4U);
        for (const VcsConfig& vcs : one.vcss) {
            EXPECT_TRUE(hosts.insert(one.port(vcs.upstream_port)->host->value).second);
            EXPECT_EQ(vcs.vppbs, 8);
        }
    }
    EXPECT_EQ(hosts.size(), 10U);
    EXPECT_TRUE(hosts.contains("host0") && hosts.contains("host9"));
}

TEST(FleetPlan, ThereIsASwitchForEach32HostsUnlessToldOtherwise) {
    EXPECT_EQ(plan_fleet(fleet_of(1))->switches.size(), 1U);
    EXPECT_EQ(plan_fleet(fleet_of(32))->switches.size(), 1U);
    EXPECT_EQ(plan_fleet(fleet_of(33))->switches.size(), 2U);
    EXPECT_EQ(plan_fleet(fleet_of(10'000))->switches.size(), 313U);
}

TEST(FleetPlan, NoTwoLogicalDevicesShareASerialNumber) {
    const auto topology = plan_fleet(fleet_of(500));
    std::set<std::uint64_t> serials;
    for (const SwitchConfig& one : topology->switches)
        for (const DeviceConfig& device : one.devices)
            for (unsigned ld = 0; ld < device.lds.size(); ++ld)
                EXPECT_TRUE(serials.insert(device.ld_serial(ld).value).second);
}

TEST(FleetPlan, ADynamicCapacityDeviceHasAsMuchForEachOfItsHosts) {
    FleetOptions options = fleet_of(4);
    options.kind = DeviceKind::kDcd;
    options.lds = 4;
    options.ld_size = gibibytes(1);
    const auto topology = plan_fleet(options);
    ASSERT_TRUE(topology.has_value());
    const DeviceConfig& device = topology->switches[0].devices.at(0);
    EXPECT_EQ(device.size, gibibytes(4));
    ASSERT_EQ(device.regions.size(), 1U);
    EXPECT_EQ(device.regions[0].size, gibibytes(4));
    EXPECT_EQ(device.lds, std::vector<Bytes>(4));
    options.heads = 2;
    options.switches = 2;
    EXPECT_FALSE(plan_fleet(options).has_value());
}

TEST(FleetPlan, SwitchesListenOnPortsInARow) {
    FleetOptions options = fleet_of(3, 3);
    options.listen = "tcp://127.0.0.1:2650";
    const auto topology = plan_fleet(options);
    EXPECT_EQ(format_endpoint(topology->switches[0].listen[0]), "tcp://127.0.0.1:2650");
    EXPECT_EQ(format_endpoint(topology->switches[2].listen[0]), "tcp://127.0.0.1:2652");
    options.listen = "unix:///run";
    EXPECT_EQ(format_endpoint(plan_fleet(options)->switches[1].listen[0]), "unix:///run/switch1.sock");
}

TEST(FleetPlan, WhatCannotBeIsRefused) {
    const auto refused = [](auto change) {
        FleetOptions options = fleet_of(64, 2);
        change(options);
        return !plan_fleet(options).has_value();
    };
    EXPECT_FALSE(refused([](FleetOptions&) {}));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.count = 0; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.count = 1'000'000; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.switches = 65; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.devices = 0; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.devices = 224; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.devices = UINT64_MAX; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.lds = 17; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.vppbs = 256; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.ld_size = mebibytes(100); }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.listen = "tcp://10.0.0.1:0"; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.listen = "tcp://127.0.0.1:65535"; }));
    EXPECT_TRUE(refused([](FleetOptions& o) { o.listen = "unix:///" + std::string(100, 'x'); }));
}

TEST(FleetPlan, FaultsFallOnAShareOfTheHostsAndTheSameOnesEachTime) {
    FleetOptions options = fleet_of(1000);
    options.faults = {{HostFault::kSilence, 0.2}, {HostFault::kLateReports, 1.0}};
    const auto count = [](const std::vector<HostFaults>& all, HostFault fault) {
        return std::ranges::count_if(all, [&](const HostFaults& one) { return one.has(fault); });
    };
    const auto all = plan_faults(options);
    EXPECT_NEAR(static_cast<double>(count(all, HostFault::kSilence)), 200, 60);
    EXPECT_EQ(count(all, HostFault::kLateReports), 1000);
    EXPECT_EQ(count(all, HostFault::kReboot), 0);
    const auto again = plan_faults(options);
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(all[i].has(HostFault::kSilence), again[i].has(HostFault::kSilence));
}

TEST(HostFault, EveryNameIsReadBack) {
    for (std::size_t i = 0; i < kHostFaults; ++i) {
        const auto fault = static_cast<HostFault>(i);
        EXPECT_EQ(parse_host_fault(to_string(fault)), fault);
    }
    EXPECT_FALSE(parse_host_fault("").has_value());
    EXPECT_FALSE(parse_host_fault("Reboot").has_value());
}

FleetOptions of_file(const std::string& name) {
    FleetOptions options;
    options.topology = MEMTIDE_CONFIG "/topologies/" + name + ".yaml";
    return options;
}

TEST(FleetPlan, TopologyFileSaysWhoIsThere) {
    FleetOptions options = of_file("sparse-pod");
    options.bind_time = std::chrono::milliseconds(7);
    const auto pod = plan_fleet(options);
    ASSERT_TRUE(pod.has_value()) << pod.error().message;
    EXPECT_EQ(pod->multi_headed.size(), 12U);
    ASSERT_EQ(pod->switches.size(), 8U);
    for (const SwitchConfig& config : pod->switches) {
        ASSERT_EQ(config.listen.size(), 1U);
        EXPECT_EQ(config.listen[0].port, 0);  // as --listen says, not as the file does
        EXPECT_EQ(config.bind_time.count(), 7);
    }
    const std::vector<HostId> hosts = fleet_hosts(*pod, options);
    ASSERT_EQ(hosts.size(), 8U);
    EXPECT_EQ(hosts[7], HostId("host7"));
}

TEST(FleetPlan, TopologyWhoseHostsNoSwitchServesIsRefused) {
    EXPECT_NE(plan_fleet(of_file("mhd-without-switch")).error().message.find("host0 has devices of its own"),
              std::string::npos);
    EXPECT_EQ(plan_fleet(of_file("no-such")).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace memtide::emul

#include "cxl-emul/switch/topology.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul {
namespace {

using ::testing::HasSubstr;

// The good topology with one thing replaced: what a reader is told about it.
std::string complaint(const std::string& what, const std::string& by) {
    std::string text = test::test_topology("/media");
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
    const auto topology = parse_topology(text, "rack.yaml");
    return topology ? "" : topology.error().message;
}

TEST(Topology, ReadsEverythingOfAGoodFile) {
    const auto topology = parse_topology(test::test_topology("/media", {"1ms", "2s", "3min"}), "rack.yaml");
    ASSERT_TRUE(topology) << topology.error().message;
    ASSERT_EQ(topology->switches.size(), 1U);
    const SwitchConfig& config = topology->switches[0];
    EXPECT_EQ(config.serial.value, 0x5357U);
    ASSERT_EQ(config.listen.size(), 2U);
    EXPECT_EQ(format_endpoint(config.listen[1]), "unix:///media/switch0.sock");
    EXPECT_EQ(config.bind_time.count(), 1);
    EXPECT_EQ(config.unbind_time.count(), 2000);
    EXPECT_EQ(config.sanitize_time.count(), 180'000);
    EXPECT_EQ(config.ports.size(), 5U);
    EXPECT_EQ(config.vcs_of(HostId("host1"))->id, 1);
    const DeviceConfig* mld = config.device(DeviceId("mld0"));
    ASSERT_NE(mld, nullptr);
    EXPECT_EQ(mld->lds, (std::vector<Bytes>{mebibytes(256), mebibytes(256), {0}, {0}}));
    EXPECT_EQ(mld->ld_serial(2).value, 0x4d54000100000003U);
    EXPECT_EQ(config.device(DeviceId("sld0"))->ld_serial(0).value, 0x50U);
    EXPECT_EQ(topology->media_file(config, *mld), "/media/memtide-test-mld0.media");
    EXPECT_EQ(topology->find_host(HostId("host0"))->memory, gibibytes(1));
}

TEST(Topology, TheShippedExampleIsGood) {
    const auto topology = load_topology(std::string(MEMTIDE_CONFIG) + "/topologies/one-switch-one-mld.yaml");
    ASSERT_TRUE(topology) << topology.error().message;
    EXPECT_EQ(topology->switches[0].devices[0].size, gibibytes(1));
}

TEST(Topology, MayLeaveHostsOut) {
    std::string text = test::test_topology("/media");
    text.erase(text.find("hosts:"));
    EXPECT_TRUE(parse_topology(text, "rack.yaml"));
}

TEST(Topology, ASwitchMaySpeakADialectAndConnectInsteadOfListening) {
    std::string text = test::test_topology("/media");
    const std::size_t at = text.find("    listen:");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, text.find('\n', at) - at, "    connect: [tcp://127.0.0.1:2651]\n    dialect: framed");
    const auto topology = parse_topology(text, "rack.yaml");
    ASSERT_TRUE(topology) << topology.error().message;
    const SwitchConfig& config = topology->switches[0];
    EXPECT_EQ(config.dialect->name, "framed");
    EXPECT_TRUE(config.listen.empty());
    ASSERT_EQ(config.connect.size(), 1U);
    EXPECT_EQ(format_endpoint(config.connect[0]), "tcp://127.0.0.1:2651");
    EXPECT_THAT(complaint("    listen:", "    dialect: klingon\n    listen:"),
                HasSubstr("\"klingon\" is none of spec, true-length"));
}

TEST(Topology, MissingFileIsNamed) {
    EXPECT_THAT(load_topology("/no/such.yaml").error().message, HasSubstr("/no/such.yaml"));
}

TEST(Topology, UnknownKeyIsRefusedWithAHint) {
    EXPECT_EQ(complaint("bind_time", "bindtime"),
              "rack.yaml:7:5: unknown key \"bindtime\"; did you mean \"bind_time\"?");
}

TEST(Topology, MissingKeyIsNamed) {
    EXPECT_EQ(complaint("      - {id: 4}", "      - {}"), "rack.yaml:15:9: missing \"id\"");
}

TEST(Topology, WrongTypeIsRefused) {
    EXPECT_THAT(complaint("vppbs: 4", "vppbs: four"), HasSubstr("rack.yaml:17:42: must be a whole number"));
}

TEST(Topology, EveryMistakeIsReported) {
    std::string text = test::test_topology("/media");
    text.replace(text.find("kind: sld"), 9, "kind: xld");
    text.replace(text.find("cpus: 2"), 7, "cpus: 0");
    const std::string message = parse_topology(text, "rack.yaml").error().message;
    EXPECT_THAT(message, HasSubstr("rack.yaml:27:28: \"xld\" is none of sld, mld and dcd"));
    EXPECT_THAT(message, HasSubstr("rack.yaml:29:39: must be a whole number from 1 to 255"));
}

TEST(Topology, NumaNodesHaveASizeAndWhatTheFirmwareSays) {
    const std::string of_host = "name: x\nhosts:\n  - name: host0\n    numa_nodes: ";
    const auto topology =
        parse_topology(of_host + "[{size: 64MiB}, {size: 1GiB, latency_ns: 700, bandwidth: 4GiB}]\n", "x");
    ASSERT_TRUE(topology) << topology.error().message;
    const auto& nodes = topology->hosts[0].numa_nodes;
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].latency_ns, 250U);
    EXPECT_EQ(nodes[0].bandwidth, gibibytes(16));
    EXPECT_EQ(nodes[1].size, gibibytes(1));
    EXPECT_EQ(nodes[1].latency_ns, 700U);
    for (const char* wrong :
         {"[{}]", "[{size: 1KiB}]", "[{size: 1GiB, latency_ns: 0}]", "[{size: 1GiB, bandwidth: 1MiB}]"})
        EXPECT_FALSE(parse_topology(of_host + wrong + "\n", "x")) << wrong;
    std::string many = "[{size: 64MiB}";
    for (int i = 0; i < 8; ++i) many += ", {size: 64MiB}";
    EXPECT_THAT(parse_topology(of_host + many + "]\n", "x").error().message,
                HasSubstr("at most 8 NUMA nodes"));
}

TEST(Topology, AHostMayHaveAnotherKernel) {
    const std::string of_host = "name: x\nhosts:\n  - name: host0\n    numa_nodes: [{size: 64MiB}]\n";
    EXPECT_EQ(parse_topology(of_host, "x")->hosts[0].kernel, "");
    const auto topology = parse_topology(of_host + "    kernel: \"7.3\"\n", "x");
    ASSERT_TRUE(topology) << topology.error().message;
    EXPECT_EQ(topology->hosts[0].kernel, "7.3");
    for (const char* wrong : {"../7.3", "\"\"", "..", "[]"})
        EXPECT_FALSE(parse_topology(of_host + "    kernel: " + wrong + "\n", "x")) << wrong;
}

TEST(Topology, PortIdGivenTwiceIsRefused) {
    EXPECT_EQ(complaint("{id: 1, host: host1}", "{id: 0, host: host1}"),
              "rack.yaml:12:14: port 0 is there already, at rack.yaml:11:14");
}

TEST(Topology, PortWithHostAndDeviceIsRefused) {
    EXPECT_EQ(complaint("{id: 2, device: mld0}", "{id: 2, host: host0, device: mld0}"),
              "rack.yaml:13:38: a port has a host or a device, not both");
}

TEST(Topology, PortOfUnknownHostIsRefused) {
    EXPECT_EQ(complaint("{id: 1, host: host1}", "{id: 1, host: host9}"),
              "rack.yaml:12:23: there is no host \"host9\" under hosts");
}

TEST(Topology, HostOnTwoPortsIsRefused) {
    EXPECT_EQ(complaint("{id: 1, host: host1}", "{id: 1, host: host0}"),
              "rack.yaml:12:23: a port of host host0 is there already, at rack.yaml:11:23");
}

TEST(Topology, PortOfUnknownDeviceIsRefused) {
    EXPECT_EQ(complaint("{id: 3, device: sld0}", "{id: 3, device: sld7}"),
              "rack.yaml:14:25: there is no device \"sld7\" under devices of switch0, nor under "
              "multi_headed_devices");
}

TEST(Topology, DeviceOnTwoPortsIsRefused) {
    EXPECT_EQ(complaint("{id: 4}", "{id: 4, device: mld0}"),
              "rack.yaml:15:25: a port of device mld0 is there already, at rack.yaml:13:25");
}

TEST(Topology, DeviceOnNoPortIsRefused) {
    EXPECT_EQ(complaint("{id: 3, device: sld0}", "{id: 3}"), "rack.yaml:27:16: no port has device \"sld0\"");
}

TEST(Topology, VcsIdGivenTwiceIsRefused) {
    EXPECT_EQ(complaint("{id: 1, upstream_port: 1", "{id: 0, upstream_port: 1"),
              "rack.yaml:18:14: VCS 0 is there already, at rack.yaml:17:14");
}

TEST(Topology, VcsWithADownstreamPortIsRefused) {
    EXPECT_EQ(complaint("upstream_port: 1", "upstream_port: 2"),
              "rack.yaml:18:32: port 2 is not an upstream port: it has no host");
}

TEST(Topology, VcsWithAnUnknownPortIsRefused) {
    EXPECT_EQ(complaint("upstream_port: 1", "upstream_port: 9"), "rack.yaml:18:32: there is no port 9");
}

TEST(Topology, TwoVcssOfOneUpstreamPortAreRefused) {
    EXPECT_EQ(complaint("upstream_port: 1", "upstream_port: 0"),
              "rack.yaml:18:32: a VCS with upstream port 0 is there already, at rack.yaml:17:32");
}

TEST(Topology, VcsWithoutVppbsIsRefused) {
    EXPECT_EQ(complaint("vppbs: 4", "vppbs: 0"), "rack.yaml:17:42: must be a whole number from 1 to 255");
}

TEST(Topology, DeviceNameGivenTwiceIsRefused) {
    EXPECT_THAT(complaint("{name: sld0, kind", "{name: mld0, kind"),
                HasSubstr("rack.yaml:27:16: device mld0 is there already, at rack.yaml:20:15"));
}

TEST(Topology, BadNameIsRefused) {
    EXPECT_THAT(complaint("name: switch0", "name: Switch_0"),
                HasSubstr("rack.yaml:3:11: \"Switch_0\" is not a name"));
}

TEST(Topology, SerialThatAnotherDevicesLdHasIsRefused) {
    EXPECT_THAT(
        complaint("serial: 0x50", "serial: 0x4d54000100000004"),
        HasSubstr("rack.yaml:27:41: serial numbers 0x4d54000100000004 to 0x4d54000100000004 meet those "
                  "of device mld0"));
}

TEST(Topology, SerialThatLeavesNoRoomForLdsIsRefused) {
    EXPECT_EQ(complaint("0x4d54000100000000", "0xfffffffffffffffd"),
              "rack.yaml:22:17: leaves no room for the serial numbers of the LDs, which follow it");
}

TEST(Topology, SizeThatIsNoMultipleOf256MiBIsRefused) {
    EXPECT_THAT(complaint("size: 1GiB", "size: 1000MiB"), HasSubstr("rack.yaml:23:15: "));
}

TEST(Topology, SizeThatIsNoMultipleOfTheGranularityIsRefused) {
    EXPECT_THAT(complaint("granularity: 256MiB", "granularity: 1GiB"),
                HasSubstr("rack.yaml:26:15: 256MiB is not a multiple of the granularity 1GiB"));
    EXPECT_THAT(
        complaint("size: 1GiB\n        granularity: 256MiB", "size: 1.25GiB\n        granularity: 512MiB"),
        HasSubstr("rack.yaml:23:15: 1.25GiB is not a multiple of the granularity 512MiB"));
}

TEST(Topology, UnknownGranularityIsRefused) {
    EXPECT_EQ(complaint("granularity: 256MiB", "granularity: 128MiB"),
              "rack.yaml:24:22: granularity must be 256MiB, 512MiB or 1GiB");
}

TEST(Topology, LdsLargerThanTheDeviceAreRefused) {
    EXPECT_EQ(complaint("[256MiB, 256MiB, 0, 0]", "[256MiB, 256MiB, 512MiB, 256MiB]"),
              "rack.yaml:26:39: LD 3 takes 256MiB and 0B of 1GiB are left");
    EXPECT_THAT(complaint("[256MiB, 256MiB, 0, 0]",
                          "[4611686018427387904, 4611686018427387904, 4611686018427387904]"),
                HasSubstr("rack.yaml:26:15: LD 0 takes"));
}

TEST(Topology, MoreThan16LdsAreRefused) {
    EXPECT_EQ(complaint("[256MiB, 256MiB, 0, 0]", "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"),
              "rack.yaml:26:14: an mld has 1 to 16 LDs, this has 17");
    EXPECT_EQ(complaint("[256MiB, 256MiB, 0, 0]", "[]"),
              "rack.yaml:26:14: an mld has 1 to 16 LDs, this has 0");
}

TEST(Topology, SaysWhatASanitizeDoes) {
    const auto with = [](const std::string& effect) {
        return parse_topology(test::test_topology("/media", {.effect = effect}), "rack.yaml")
            ->switches[0]
            .devices[0]
            .sanitize;
    };
    EXPECT_EQ(with("does-nothing"), SanitizeEffect::kDoesNothing);
    EXPECT_EQ(with("fails"), SanitizeEffect::kFails);
    EXPECT_EQ(with("erases"), SanitizeEffect::kErases);
    EXPECT_THAT(complaint("sanitize: erases", "sanitize: explodes"),
                HasSubstr("is none of erases, does-nothing and fails"));
}

TEST(Topology, SldWithLdsIsRefused) {
    EXPECT_EQ(complaint("serial: 0x50, size: 256MiB", "serial: 0x50, size: 256MiB, lds: [256MiB]"),
              "rack.yaml:27:66: only an mld has this");
}

TEST(Topology, ListenerGivenTwiceIsRefused) {
    EXPECT_EQ(complaint("\"tcp://127.0.0.1:0\"", "\"unix:///media/switch0.sock\""),
              "rack.yaml:5:44: a listener at unix:///media/switch0.sock is there already, at rack.yaml:5:14");
}

TEST(Topology, ListenerThatIsNotLoopbackIsRefused) {
    EXPECT_THAT(complaint("tcp://127.0.0.1:0", "tcp://0.0.0.0:2650"),
                HasSubstr("rack.yaml:5:14: \"0.0.0.0\" is not a loopback address"));
}

TEST(Topology, RelativeMediaFolderIsRefused) {
    EXPECT_EQ(complaint("media: /media", "media: media"),
              "rack.yaml:6:12: must be the absolute path of a folder");
}

TEST(Topology, BadTimeIsRefused) {
    EXPECT_THAT(complaint("bind_time: 0ms", "bind_time: soon"),
                HasSubstr("rack.yaml:7:16: \"soon\" must be a duration"));
}

TEST(Topology, HostNameGivenTwiceIsRefused) {
    EXPECT_THAT(complaint("{name: host1, memory", "{name: host0, memory"),
                HasSubstr("rack.yaml:30:12: host host0 is there already, at rack.yaml:29:12"));
}

// A topology with a device whose two heads are in two hosts, and a network between these; one thing replaced.
std::string direct_complaint(const std::string& what, const std::string& by) {
    std::string text = R"(name: direct
multi_headed_devices:
  - {name: mhd0, kind: mld, serial: 0x100, size: 1GiB, heads: 2, lds: [256MiB, 256MiB]}
hosts:
  - {name: host0, heads: [{device: mhd0, head: 0}]}
  - {name: host1, heads: [{device: mhd0, head: 1}]}
networks:
  - {name: rdma0, hosts: [host0, host1]}
)";
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), by);
    const auto topology = parse_topology(text, "rack.yaml");
    return topology ? "" : topology.error().message;
}

TEST(Topology, HeadsMayBeInHosts) {
    EXPECT_EQ(direct_complaint("direct", "direct"), "");
    EXPECT_EQ(direct_complaint("head: 1}", "head: 0}"),
              "rack.yaml:6:48: a port of head 0 of device mhd0 is there already, at rack.yaml:5:48");
    EXPECT_EQ(direct_complaint("head: 1}", "head: 2}"), "rack.yaml:6:48: device \"mhd0\" has heads 0 to 1");
    EXPECT_EQ(direct_complaint("heads: 2", "heads: 3"), "rack.yaml:3:12: no port has head 2 of device mhd0");
    EXPECT_THAT(direct_complaint("[{device: mhd0, head: 1}]", "[{device: mhd1, head: 1}]"),
                HasSubstr("rack.yaml:6:36: there is no device \"mhd1\" under multi_headed_devices"));
}

TEST(Topology, HeadsInHostsAndAtSwitchesOfOneDeviceAreRefused) {
    EXPECT_EQ(direct_complaint(
                  ", heads: [{device: mhd0, head: 1}]}",
                  "}\nswitches:\n"
                  "  - {name: s, listen: [\"tcp://127.0.0.1:0\"], ports: [{id: 0, host: host1}, {id: 1, "
                  "device: mhd0, head: 1}], vcss: [{id: 0, upstream_port: 0, vppbs: 1}], devices: []}"),
              "rack.yaml:5:48: device \"mhd0\" has heads at ports of switches, and in hosts");
}

TEST(Topology, NetworkIsBetweenTwoHostsThatAreThere) {
    EXPECT_EQ(direct_complaint("[host0, host1]", "[host0]"),
              "rack.yaml:8:26: a network connects two hosts, not 1");
    EXPECT_EQ(direct_complaint("[host0, host1]", "[host0, host0]"),
              "rack.yaml:8:34: network rdma0 of host host0 is there already, at rack.yaml:8:27");
    EXPECT_EQ(direct_complaint("[host0, host1]", "[host0, host7]"),
              "rack.yaml:8:34: there is no host \"host7\" under hosts");
    EXPECT_EQ(direct_complaint("{name: rdma0", "{name: much-too-long-a-name"),
              "rack.yaml:8:12: \"much-too-long-a-name\" cannot be the name of a network interface");
    EXPECT_EQ(direct_complaint("{name: rdma0", "{name: eth0"),
              "rack.yaml:8:12: \"eth0\" cannot be the name of a network interface");
}

TEST(Topology, EmptyListsAreRefused) {
    EXPECT_EQ(parse_topology("name: x\nswitches: []\n", "rack.yaml").error().message,
              "rack.yaml:1:1: a topology has at least one switch, or hosts with devices of their own");
    EXPECT_EQ(complaint("[\"tcp://127.0.0.1:0\", \"unix:///media/switch0.sock\"]", "[]"),
              "rack.yaml:5:13: a switch listens somewhere: tcp://127.0.0.1:2650 or unix:///PATH");
}

}  // namespace
}  // namespace memtide::emul

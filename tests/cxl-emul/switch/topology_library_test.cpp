// The topologies in config/topologies: each loads without a word against it, and its switches run and answer.
#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/switch/switch.h"
#include "cxl-emul/switch/topology_findings.h"
#include "tests/cxl-emul/switch/manager.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> library() {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(MEMTIDE_CONFIG "/topologies"))
        files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}
Topology topology_of(const std::string& name) {
    return load_topology(MEMTIDE_CONFIG "/topologies/" + name + ".yaml").value();
}

// All switches of a topology, on one thread, with media and listeners of the test's own.
class RunningTopology {
  public:
    explicit RunningTopology(Topology topology) : topology_(std::move(topology)) {
        for (DeviceConfig& device : topology_.multi_headed) device.media = folder_.path();
        for (SwitchConfig& config : topology_.switches) {
            config.media = folder_.path();
            config.listen.assign(1, Endpoint{Endpoint::Kind::kTcp, "127.0.0.1", 0, {}});
            for (DeviceConfig& device : config.devices) device.media = folder_.path();
        }
        const auto shared = open_shared_devices(topology_, topology_.switches).value();
        for (const SwitchConfig& config : topology_.switches) {
            switches_.push_back(
                Switch::open(context_.get_executor(), topology_, config, no_hotplug(), {}, shared).value());
            switches_.back()->start();
        }
        thread_ = std::thread([this] { context_.run(); });
    }
    ~RunningTopology() {
        boost::asio::post(context_, [this] {
            for (const auto& one : switches_) one->stop();
        });
        thread_.join();
    }
    RunningTopology(const RunningTopology&) = delete;
    RunningTopology& operator=(const RunningTopology&) = delete;

    [[nodiscard]] std::string address(std::size_t n) const { return switches_[n]->addresses().at(0); }

  private:
    TemporaryFolder folder_{"/dev/shm"};
    Topology topology_;
    boost::asio::io_context context_{1};
    std::vector<std::unique_ptr<Switch>> switches_;
    std::thread thread_;
};

class TopologyLibrary : public testing::TestWithParam<std::string> {};

TEST_P(TopologyLibrary, HasNeitherMistakesNorRemarks) {
    const TopologyFindings findings = examine_topology(GetParam());
    EXPECT_TRUE(findings.is_good()) << explain(findings);
    EXPECT_TRUE(findings.remarks.empty()) << explain(findings);
}

TEST_P(TopologyLibrary, SwitchesRunAndShowAManagerWhatTheFileSays) {
    const Topology topology = load_topology(GetParam()).value();
    const RunningTopology running(topology);
    for (std::size_t n = 0; n < topology.switches.size(); ++n) {
        Manager manager(running.address(n));
        const auto identity = manager.get<fmapi::IdentifySwitchDevice>();
        EXPECT_EQ(identity.physical_ports, topology.switches[n].ports.size());
        EXPECT_EQ(identity.vcss, topology.switches[n].vcss.size());
    }
}

INSTANTIATE_TEST_SUITE_P(Each, TopologyLibrary, testing::ValuesIn(library()), [](const auto& file) {
    std::string name = fs::path(file.param).stem();
    std::ranges::replace(name, '-', '_');
    return name;
});

// host -> devices that it reaches through its switches.
std::map<std::string, std::set<std::string>> reach(const Topology& topology) {
    std::map<std::string, std::set<std::string>> devices;
    for (const SwitchConfig& config : topology.switches)
        for (const HostId& host : all_hosts(topology))
            if (config.vcs_of(host) != nullptr)
                for (const DeviceConfig& device : config.devices)
                    devices[host.value].insert(device.name.value);
    return devices;
}

TEST(TopologyLibraryShapes, SparsePodIsACubeOfHostsWithADeviceOnEachEdge) {
    const Topology pod = topology_of("sparse-pod");
    EXPECT_EQ(pod.multi_headed.size(), 12U);
    const auto devices = reach(pod);
    ASSERT_EQ(devices.size(), 8U);
    for (const auto& [host, own] : devices) EXPECT_EQ(own.size(), 3U) << host;
    for (unsigned a = 0; a < 8; ++a)
        for (unsigned b = a + 1; b < 8; ++b) {
            std::vector<std::string> both;
            std::ranges::set_intersection(devices.at("host" + std::to_string(a)),
                                          devices.at("host" + std::to_string(b)), std::back_inserter(both));
            EXPECT_EQ(both.size(), std::has_single_bit(a ^ b) ? 1U : 0U) << a << " " << b;
        }
}

TEST(TopologyLibraryShapes, TwoPathsLeadEveryHostToTheSharedDeviceThroughBothSwitches) {
    const Topology paths = topology_of("two-switches-two-paths");
    for (const SwitchConfig& config : paths.switches) {
        EXPECT_NE(config.device(DeviceId("mhd0")), nullptr);
        for (const HostConfig& host : paths.hosts) EXPECT_NE(config.vcs_of(host.name), nullptr);
    }
}

TEST(TopologyLibraryShapes, CascadeHasACableForEachHost) {
    const Topology topology = topology_of("two-switches-cascaded");
    for (const PortConfig& port : topology.switches[0].ports) {
        if (!port.cascade) continue;
        EXPECT_EQ(port.cascade->below, SwitchId("switch1"));
        EXPECT_TRUE(topology.switches[1].port(port.cascade->upstream_port)->host);
    }
}

TEST(TopologyLibraryShapes, EachIsInTheDocumentation) {
    std::ifstream file(MEMTIDE_DOCS "/topologies.md");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const std::string& one : library())
        EXPECT_THAT(text, testing::HasSubstr("config/topologies/" + fs::path(one).filename().string()));
}

TEST(TopologyLibraryShapes, SixteenHostsAreFourAtEachSwitch) {
    const Topology topology = topology_of("sixteen-hosts-four-switches");
    EXPECT_EQ(all_hosts(topology).size(), 16U);
    ASSERT_EQ(topology.switches.size(), 4U);
    for (const SwitchConfig& config : topology.switches) EXPECT_EQ(config.vcss.size(), 4U);
}

TEST(TopologyLibraryShapes, MhdWithoutSwitchHasAHeadInEachHost) {
    const Topology topology = topology_of("mhd-without-switch");
    EXPECT_TRUE(topology.switches.empty());
    for (std::size_t n = 0; n < 2; ++n) EXPECT_EQ(topology.hosts[n].heads.at(0).head, n);
}

TEST(TopologyLibraryShapes, RdmaNetworkIsBetweenTheTwoHosts) {
    const Topology topology = topology_of("rdma-two-hosts");
    ASSERT_EQ(topology.networks.size(), 1U);
    EXPECT_THAT(topology.networks[0].hosts, testing::ElementsAre(HostId("host0"), HostId("host1")));
}

}  // namespace
}  // namespace memtide::emul::test

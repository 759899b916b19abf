// One multi-headed device between two hosts, each behind a switch of its own.
#include <fmt/format.h>

#include "cxl-emul/switch/switch.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

constexpr std::uint64_t kUnit = 268435456;

std::string topology_of(const TempFolder& folder) {
    return fmt::format(R"(name: mhd
switches:
  - name: switch0
    listen: ["unix://{0}/mhd0.sock"]
    ports: [{{id: 0, host: host0}}, {{id: 2, device: mhd0, head: 0}}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices: []
  - name: switch1
    listen: ["unix://{0}/mhd1.sock"]
    ports: [{{id: 0, host: host1}}, {{id: 2, device: mhd0, head: 1}}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices: []
multi_headed_devices:
  - {{name: mhd0, kind: mld, serial: 0x4d54000100000000, size: 1GiB, heads: 2, media: {0},
     lds: [256MiB, 256MiB, 256MiB, 256MiB]}}
)",
                       folder.path());
}

std::string manager_of(const TempFolder& folder) {
    return fmt::format(R"(listen: ["127.0.0.1:0", "{1}"]
state: {0}/state.db
switches:
  - {{name: switch0, address: "unix://{0}/mhd0.sock"}}
  - {{name: switch1, address: "unix://{0}/mhd1.sock"}}
hosts:
  - {{name: host0, attach: [{{switch: switch0, vcs: 0}}]}}
  - {{name: host1, attach: [{{switch: switch1, vcs: 0}}]}}
timing: {{{2}, gone_after: 200ms}}
)",
                       folder.path(), manager_url(folder), kQuickTiming);
}

class MultiHeaded : public Fabric {
  protected:
    void SetUp() override {
        const emul::Topology topology = emul::parse_topology(topology_of(folder_), "topology.yaml").value();
        background_.call([&] {
            const auto shared = emul::open_shared_devices(topology, topology.switches).value();
            for (const emul::SwitchConfig& config : topology.switches) {
                switches_.push_back(emul::Switch::open(background_.executor(), topology, config,
                                                       emul::no_hotplug(), {}, shared)
                                        .value());
                switches_.back()->start();
            }
            return 0;
        });
        const std::string file = folder_.file("manager.yaml");
        write_file(file, manager_of(folder_));
        manager_.emplace(
            Daemon({MEMTIDE_FABRIC_MANAGER, "--config", file}, folder_.file("manager.out"), "listening on"));
        run_agent("host0");
        run_agent("host1");
        EXPECT_TRUE(eventually([this] { return heads() == 2; }));
    }
    void TearDown() override {
        Fabric::TearDown();
        switches_.clear();
    }
    std::size_t heads() {
        const boost::json::value devices = rest_.get("/v1/devices").json;
        const auto& items = devices.at("items").as_array();
        return items.size() == 1 ? items[0].at("heads").as_array().size() : 0;
    }
    void set_link(std::size_t head, bool up) { switches_.at(head)->set_device_link(DeviceId("mhd0"), up); }

    std::vector<std::unique_ptr<emul::Switch>> switches_;
};

TEST_F(MultiHeaded, BothHostsComposeFromOneDeviceThatCountsOnce) {
    EXPECT_EQ(number("/v1/pool", "capacity"), 4 * kUnit);
    const std::string one = compose("host0", "512MiB");
    const std::string two = compose("host1", "256MiB");
    const boost::json::value first = expect_state(one, "Online");
    const boost::json::value second = expect_state(two, "Online");
    EXPECT_EQ(only_part(first).at("device"), only_part(second).at("device"));
    EXPECT_EQ(text(only_part(first), "switch"), "switch0");
    EXPECT_EQ(text(only_part(second), "switch"), "switch1");
    EXPECT_EQ(number("/v1/pool", "composed"), 3 * kUnit);
    // What is left belongs to the other head, and nothing of it can be carved out from here.
    EXPECT_EQ(rest_.compose("host0", "256MiB").status, 409U);
    release(one);
    release(two);
    expect_state(one, "Released");
    expect_state(two, "Released");
    expect_all_free();
}

TEST_F(MultiHeaded, LosingOneHeadFailsOnlyWhatIsBehindIt) {
    const std::string one = compose("host0");
    const std::string two = compose("host1");
    expect_state(one, "Online");
    expect_state(two, "Online");
    set_link(1, false);
    const boost::json::value lost = rest_.wait(two, "Failed");
    EXPECT_EQ(text(lost.at("reason"), "code"), "device-vanished");
    EXPECT_EQ(state_of(one), "Online");
    EXPECT_EQ(number("/v1/pool", "capacity"), 4 * kUnit);
    EXPECT_EQ(heads(), 1U);
    set_link(1, true);
    EXPECT_TRUE(eventually([this] { return heads() == 2; }));
    EXPECT_EQ(state_of(one), "Online");
    const std::string again = compose("host1");
    expect_state(again, "Online");
}

}  // namespace
}  // namespace memtide::test

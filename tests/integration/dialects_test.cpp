// Memory is composed behind a switch of every dialect, which the manager finds out or is told.
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include "cxl-emul/switch/switch.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

// What the manager is told of the switch.
struct Told {
    std::string name;     // of the test
    std::string dialect;  // of the switch
    std::string link;     // members of its row in the manager's configuration
    std::string shown;    // name in GET /v1/switches
    bool detected = true;
    bool connects = false;  // the switch does
};

void PrintTo(const Told& told, std::ostream* out) { *out << told.name; }

class ComposingOverADialect : public Fabric, public testing::WithParamInterface<Told> {
  protected:
    void SetUp() override {
        const std::string socket = "unix://" + folder_.file("switch.sock");
        const std::uint16_t port = GetParam().connects ? free_port() : 0;
        const std::string manager_side = fmt::format("tcp://127.0.0.1:{}", port);
        const std::string place = GetParam().connects ? fmt::format(R"(connect: ["{}"])", manager_side)
                                                      : fmt::format(R"(listen: ["{}"])", socket);
        const emul::Topology topology = emul::parse_topology(topology_of(place), "topology.yaml").value();
        background_.call([&] {
            emulated_ =
                emul::Switch::open(background_.executor(), topology, topology.switches[0], emul::no_hotplug())
                    .value();
            emulated_->start();
            return 0;
        });
        write_file(folder_.file("manager.yaml"),
                   manager_of(GetParam().connects ? "listen: \"" + manager_side : "address: \"" + socket));
        manager_.emplace(Daemon({MEMTIDE_FABRIC_MANAGER, "--config", folder_.file("manager.yaml")},
                                folder_.file("manager.out"), "listening on"));
        run_agent("host0");
        expect_ready();
    }
    void TearDown() override {
        Fabric::TearDown();
        emulated_.reset();
    }

    [[nodiscard]] std::string topology_of(const std::string& place) const {
        return fmt::format(R"(name: dialect
switches:
  - name: switch0
    {0}
    dialect: {1}
    media: {2}
    ports: [{{id: 0, host: host0}}, {{id: 2, device: mld0}}, {{id: 3, device: sld0}}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices:
      - {{name: mld0, kind: mld, serial: 0x4d54000100000000, size: 512MiB, lds: [256MiB, 256MiB]}}
      - {{name: sld0, kind: sld, serial: 0x50, size: 256MiB}}
)",
                           place, GetParam().dialect, folder_.path());
    }
    [[nodiscard]] std::string manager_of(const std::string& place) const {
        return fmt::format(R"(listen: ["127.0.0.1:0", "{1}"]
state: {0}/state.db
switches:
  - {{name: switch0, {2}"{3}}}
hosts:
  - {{name: host0, attach: [{{switch: switch0, vcs: 0}}]}}
timing: {{{4}, gone_after: 200ms}}
)",
                           folder_.path(), manager_url(folder_), place, GetParam().link, kQuickTiming);
    }
    // One that was free a moment ago.
    std::uint16_t free_port() {
        return background_.call([&] {
            const boost::asio::ip::tcp::acceptor probe(background_.executor(),
                                                       {boost::asio::ip::address_v4::loopback(), 0});
            return probe.local_endpoint().port();
        });
    }

    std::unique_ptr<emul::Switch> emulated_;
};
INSTANTIATE_TEST_SUITE_P(
    , ComposingOverADialect,
    testing::Values(Told{"Spec", "spec", "", "spec"}, Told{"TrueLength", "true-length", "", "true-length"},
                    Told{"Framed", "framed", "", "framed"},
                    Told{"FramedBigEndian", "framed-big-endian", "", "framed-big-endian"},
                    Told{"HighNibble", "high-nibble", "", "high-nibble"},
                    Told{"OpcodeZero", "opcode-zero", "", "opcode-zero"},
                    Told{"Cxl20", "cxl-2.0", "", "cxl-2.0"},
                    Told{"ShortIdentify", "short-identify", "", "short-identify"},
                    Told{"SilentTold", "silent", ", dialect: silent", "silent", false},
                    Told{"SilentNotTold", "silent", "", "spec"},
                    Told{"NeedsEid", "needs-eid", ", dialect: needs-eid, eid: 17", "needs-eid", false},
                    Told{"GivenAnEid", "needs-eid", ", eid: 17", "spec"},
                    Told{"Pipelined", "pipelined", ", in_flight: 16", "spec"},
                    Told{"FramedAndConnecting", "framed", ", dialect: framed", "framed", false, true},
                    Told{"Connecting", "spec", "", "spec", true, true}),
    [](const auto& info) { return info.param.name; });

TEST_P(ComposingOverADialect, MemoryComesAndGoes) {
    for (const char* size : {"512MiB", "256MiB"}) {
        const std::string id = compose("host0", size);
        expect_state(id, "Online");
        release(id);
        expect_state(id, "Released");
    }
    const boost::json::value one = rest_.get("/v1/switches/switch0").json;
    EXPECT_EQ(text(one.at("dialect"), "name"), GetParam().shown);
    EXPECT_EQ(one.at("dialect").at("detected").as_bool(), GetParam().detected);
}

}  // namespace
}  // namespace memtide::test

// A switch below another, with emulated hosts: what a cable that is down takes from whom.
#include <gtest/gtest.h>

#include "cxl-emul/faults/fault_place.h"
#include "cxl-emul/hosts/fleet.h"
#include "tests/cxl-emul/switch/manager.h"
#include "tests/cxl-emul/switch/test_switch.h"
#include "tests/integration/background.h"
#include "tests/integration/eventually.h"

namespace memtide::emul::test {
namespace {

using memtide::test::eventually;

const SwitchId kUpper("switch0");
const SwitchId kLower("switch1");
constexpr std::uint8_t kCableOfHost0 = 3;

class CascadedFleet : public testing::Test {
  protected:
    CascadedFleet() {
        background_.call([&] {
            FleetOptions options;
            options.topology = MEMTIDE_CONFIG "/topologies/two-switches-cascaded.yaml";
            options.listen = "unix://" + folder_.path();
            options.manager = "unix:" + folder_.path() + "/no-manager.sock";
            fleet_ = Fleet::open(background_.executor(), options).value();
            fleet_->start();
            return 0;
        });
        // Each host has an LD of the upper switch, and one of the lower.
        for (const char* name : {"switch0", "switch1"}) {
            Manager fm("unix://" + folder_.path() + "/" + name + ".sock");
            for (const std::uint8_t host : {std::uint8_t{0}, std::uint8_t{1}})
                if (fm.bind(host, 0, 2, host) != fmapi::ReturnCode::kSuccess)
                    throw std::runtime_error("a bind is refused");
        }
    }
    ~CascadedFleet() override {
        background_.call([&] {
            fleet_->stop();
            return 0;
        });
        background_.stop();
        fleet_.reset();
    }

    template <typename F>
    void at_fleet(F what) {
        background_.call([&] {
            what(*fleet_);
            return 0;
        });
    }
    std::size_t seen_by(const char* host) {
        return background_.call([&] { return fleet_->host(HostId(host))->model().plugged_count(); });
    }
    // Lanes of the lower switch's upstream port of that host.
    int width_below(std::uint8_t port) {
        Manager fm("unix://" + folder_.path() + "/switch1.sock");
        return fm.get<fmapi::GetPhysicalPortState>({{port}}).ports.at(0).negotiated_link_width;
    }

    TemporaryFolder folder_;
    memtide::test::Background background_;
    std::unique_ptr<Fleet> fleet_;
};

TEST_F(CascadedFleet, ACableThatIsDownTakesWhatItsHostHasBelow) {
    EXPECT_EQ(seen_by("host0"), 2U);
    at_fleet([](Fleet& fleet) { fleet.set_port_link(kUpper, kCableOfHost0, false); });
    EXPECT_EQ(seen_by("host0"), 1U);
    EXPECT_EQ(seen_by("host1"), 2U);
    EXPECT_TRUE(eventually([&] { return width_below(0) == 0; }));
    EXPECT_NE(width_below(1), 0);
    at_fleet([](Fleet& fleet) { fleet.set_port_link(kUpper, kCableOfHost0, true); });
    EXPECT_EQ(seen_by("host0"), 2U);
    EXPECT_TRUE(eventually([&] { return width_below(0) != 0; }));
}

TEST_F(CascadedFleet, AFaultMayBeACables) {
    const Topology topology = load_topology(MEMTIDE_CONFIG "/topologies/two-switches-cascaded.yaml").value();
    Fault fault;
    fault.switch_name = kUpper;
    fault.port = kCableOfHost0;
    for (const FaultKind kind : {FaultKind::kLinkDown, FaultKind::kSurpriseRemoval}) {
        fault.kind = kind;
        EXPECT_TRUE(place_of(fault, topology).has_value());
    }
    fault.kind = FaultKind::kPoison;
    EXPECT_FALSE(place_of(fault, topology).has_value());
}

TEST_F(CascadedFleet, APulledCableIsTheSame) {
    at_fleet([](Fleet& fleet) { fleet.set_port_plugged(kUpper, kCableOfHost0, false); });
    EXPECT_EQ(seen_by("host0"), 1U);
    at_fleet([](Fleet& fleet) { fleet.set_port_plugged(kUpper, kCableOfHost0, true); });
    EXPECT_EQ(seen_by("host0"), 2U);
}

TEST_F(CascadedFleet, WithoutPowerAboveNobodyReachesWhatIsBelow) {
    at_fleet([](Fleet& fleet) { (void)fleet.power_off(kUpper, std::nullopt); });
    EXPECT_TRUE(eventually([&] { return seen_by("host0") == 0 && seen_by("host1") == 0; }));
    at_fleet([](Fleet& fleet) { fleet.set_port_link(kUpper, kCableOfHost0, false); });
    at_fleet([](Fleet& fleet) { (void)fleet.power_on(kUpper); });
    // The lower switch kept its bindings; one of the cables is out still.
    EXPECT_TRUE(eventually([&] { return seen_by("host1") == 1; }));
    EXPECT_EQ(seen_by("host0"), 0U);
    at_fleet([](Fleet& fleet) { fleet.set_port_link(kUpper, kCableOfHost0, true); });
    EXPECT_EQ(seen_by("host0"), 1U);
}

TEST_F(CascadedFleet, ASwitchBelowThatIsPoweredAgainFindsItsCableOut) {
    at_fleet([](Fleet& fleet) { fleet.set_port_link(kUpper, kCableOfHost0, false); });
    at_fleet([](Fleet& fleet) { (void)fleet.power_off(kLower, std::nullopt); });
    EXPECT_TRUE(eventually([&] { return seen_by("host1") == 1; }));
    at_fleet([](Fleet& fleet) { (void)fleet.power_on(kLower); });
    ASSERT_TRUE(
        eventually([&] { return background_.call([&] { return fleet_->counts().switches_off == 0; }); }));
    EXPECT_TRUE(eventually([&] { return width_below(0) == 0; }));
    EXPECT_NE(width_below(1), 0);
}

}  // namespace
}  // namespace memtide::emul::test

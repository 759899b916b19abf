#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cxl-emul/hosts/control.h"
#include "cxl-emul/hosts/fleet_equipment.h"
#include "tests/cxl-emul/hosts/scripted_fleet.h"

namespace memtide::emul::test {
namespace {

class FleetTest : public ScriptedFleet {
  protected:
    FleetTest() : ScriptedFleet(DeviceKind::kMld) {}
};

TEST_F(FleetTest, ABindAtTheSwitchIsMemoryAtTheHost) {
    Manager fm = connect();
    want(kWantOnline);
    EXPECT_TRUE(reports("host0", "absent"));
    EXPECT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    EXPECT_TRUE(reports("host0", "online"));
    EXPECT_EQ(counts().online, 1U);
    want(kWantOffline);
    EXPECT_TRUE(reports("host0", "offline"));
    EXPECT_EQ(fm.unbind(0, 0), fmapi::ReturnCode::kSuccess);
    EXPECT_EQ(counts().bound, 0U);
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetTest, TheNextOwnerOfMemoryThatWasNotErasedSeesIt) {
    Manager fm = connect();
    want(kWantOnline);
    ASSERT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    ASSERT_TRUE(reports("host0", "online"));
    want(kWantOffline);
    ASSERT_TRUE(reports("host0", "offline"));
    ASSERT_EQ(fm.unbind(0, 0), fmapi::ReturnCode::kSuccess);
    ASSERT_EQ(fm.bind(1, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    EXPECT_EQ(violations(), 1U);
}

TEST_F(FleetTest, WithoutPowerASwitchForgetsItsBindingsAndComesBackWhereItWas) {
    {
        Manager fm = connect();
        ASSERT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
        ASSERT_TRUE(background_.call([&] { return fleet_->power_off(SwitchId("switch0"), std::nullopt); })
                        .has_value());
        EXPECT_TRUE(fm.is_dropped());
    }
    EXPECT_TRUE(eventually([&] { return counts().switches_off == 1 && counts().bound == 0; }));
    EXPECT_FALSE(
        background_.call([&] { return fleet_->power_off(SwitchId("switch0"), std::nullopt); }).has_value());
    ASSERT_TRUE(background_.call([&] { return fleet_->power_on(SwitchId("switch0")); }).has_value());
    ASSERT_TRUE(eventually([&] { return counts().switches_off == 0; }));
    Manager fm = connect();
    EXPECT_EQ(fm.vppb(0, 0).binding, fmapi::VppbBinding::kUnbound);
    EXPECT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetTest, ADeviceWithItsLinkDownIsGoneForHostAndManager) {
    Manager fm = connect();
    want(kWantOnline);
    ASSERT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    ASSERT_TRUE(reports("host0", "online"));
    const DeviceId device("dev-0-0");
    using enum Fleet::DeviceFault;
    ASSERT_TRUE(
        background_.call([&] { return fleet_->begin_fault(device, kLinkDown, std::nullopt); }).has_value());
    EXPECT_TRUE(reports("host0", "absent"));
    fmapi::GetPhysicalPortStateRequest request;
    request.ports = {2};
    EXPECT_EQ(fm.get<fmapi::GetPhysicalPortState>(request).ports.at(0).device_type,
              fmapi::ConnectedDeviceType::kNone);
    ASSERT_TRUE(background_.call([&] { return fleet_->end_fault(device, kLinkDown); }).has_value());
    EXPECT_TRUE(reports("host0", "online"));
    EXPECT_EQ(violations(), 0U);
}

TEST_F(FleetTest, AHostThatRebootsComesBackWithAnotherBootIdAndItsMemory) {
    Manager fm = connect();
    want(kWantOnline);
    ASSERT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    ASSERT_TRUE(reports("host0", "online"));
    ASSERT_TRUE(
        background_.call([&] { return fleet_->begin_fault(HostId("host0"), HostFault::kReboot, 20ms); })
            .has_value());
    EXPECT_TRUE(eventually([&] {
        return background_.call([&] {
            return manager_->reported("host0").at("boot_id") == "host0-boot-2" &&
                   manager_->state("host0") == "online";
        });
    }));
}

TEST_F(FleetTest, ASilentAgentActsAndReportsOnlyLater) {
    want(kWantOnline);
    ASSERT_TRUE(reports("host0", "absent"));
    ASSERT_TRUE(begin(HostFault::kSilence).has_value());
    Manager fm = connect();
    ASSERT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    EXPECT_TRUE(eventually([&] { return counts().online == 1; }));
    EXPECT_EQ(background_.call([&] { return manager_->state("host0"); }), "absent");
    ASSERT_TRUE(end(HostFault::kSilence).has_value());
    EXPECT_TRUE(reports("host0", "online"));
}

TEST_F(FleetTest, ADeadAgentDoesNothingUntilItIsBack) {
    want(kWantOnline);
    ASSERT_TRUE(reports("host0", "absent"));
    ASSERT_TRUE(begin(HostFault::kAgentDies).has_value());
    EXPECT_EQ(counts().agents, 1U);
    Manager fm = connect();
    ASSERT_EQ(fm.bind(0, 0, 2, 0), fmapi::ReturnCode::kSuccess);
    EXPECT_EQ(counts().online, 0U);
    ASSERT_TRUE(end(HostFault::kAgentDies).has_value());
    EXPECT_TRUE(reports("host0", "online"));
}

TEST_F(FleetTest, AReportForAnotherThatIsTakenIsAViolation) {
    ASSERT_TRUE(begin(HostFault::kReportsForAnother).has_value());
    want(kWantOnline);  // and the scripted manager takes everything
    EXPECT_TRUE(eventually([&] { return violations() > 0; }));
}

TEST_F(FleetTest, HealingEndsEverything) {
    ASSERT_TRUE(begin(HostFault::kAgentDies).has_value());
    ASSERT_TRUE(begin(HostFault::kLinkDown).has_value());
    ASSERT_TRUE(
        background_.call([&] { return fleet_->power_off(SwitchId("switch0"), std::nullopt); }).has_value());
    ASSERT_TRUE(eventually([&] { return counts().switches_off == 1; }));
    background_.call([&] {
        fleet_->heal();
        return 0;
    });
    EXPECT_TRUE(eventually([&] {
        const FleetCounts now = counts();
        return now.switches_off == 0 && now.faulty_hosts == 0 && now.agents == 2;
    }));
}

TEST_F(FleetTest, WhatDoesNotExistCannotFail) {
    background_.call([&] {
        EXPECT_FALSE(fleet_->begin_fault(HostId("host2"), HostFault::kReboot, std::nullopt).has_value());
        EXPECT_FALSE(fleet_->power_off(SwitchId("switch1"), std::nullopt).has_value());
        EXPECT_FALSE(fleet_->begin_fault(DeviceId("dev-1-0"), Fleet::DeviceFault::kLinkDown, std::nullopt)
                         .has_value());
        return 0;
    });
}

// The fleet's control interface, asked without a connection.
class Control {
  public:
    Control(memtide::test::Background& background, Fleet& fleet) : background_(background) {
        background_.call([&] {
            equipment_.emplace(fleet);
            board_.emplace(background_.executor(), *equipment_);
            add_control_routes(router_, fleet, *board_);
            return 0;
        });
    }
    http::Response ask(std::string method, std::string path, std::map<std::string, std::string> query = {},
                       std::string body = {}) {
        http::Request request;
        request.method = std::move(method);
        request.path = std::move(path);
        request.query = std::move(query);
        request.body = std::move(body);
        return background_.run(router_.dispatch(std::move(request)));
    }

  private:
    memtide::test::Background& background_;
    http::Router router_;
    std::optional<FleetEquipment> equipment_;
    std::optional<FaultBoard> board_;
};

TEST_F(FleetTest, ControlChangesVirtualSwitchesAndShowsWhoGetsWhichBandwidth) {
    Control control(background_, *fleet_);
    const auto ask = [&](const std::string& method, const std::string& path,
                         std::map<std::string, std::string> query = {}) {
        return control.ask(method, "/v1/switches/" + path, std::move(query));
    };
    Manager fm = connect();
    const auto vppbs = [&](std::uint8_t vcs) {
        const fmapi::GetVirtualSwitchInfoRequest request{.vcss = {vcs}};
        return fm
            .get<fmapi::GetVirtualSwitchInfo>(request,
                                              fmapi::GetVirtualSwitchInfoResponse::answering(request))
            .vcss.at(0)
            .total_vppbs;
    };
    EXPECT_EQ(ask("PUT", "switch0/vcss/0", {{"vppbs", "9"}}).status, 204U);
    EXPECT_EQ(vppbs(0), 9);
    ASSERT_EQ(fm.bind(0, 8, 2, 0), fmapi::ReturnCode::kSuccess);
    EXPECT_EQ(ask("PUT", "switch0/vcss/0", {{"vppbs", "8"}}).status, 409U);
    EXPECT_EQ(ask("DELETE", "switch0/vcss/0").status, 409U);
    EXPECT_EQ(ask("DELETE", "switch0/vcss/1").status, 204U);
    EXPECT_EQ(ask("DELETE", "switch0/vcss/1").status, 404U);
    EXPECT_EQ(
        ask("PUT", "switch0/vcss/7", {{"vppbs", "3"}, {"upstream_port", "1"}, {"enabled", "false"}}).status,
        204U);
    EXPECT_EQ(vppbs(7), 3);
    EXPECT_EQ(ask("PUT", "switch0/vcss/7").status, 422U);
    EXPECT_EQ(ask("PUT", "switch0/vcss/x", {{"vppbs", "3"}}).status, 422U);
    EXPECT_EQ(ask("PUT", "switch9/vcss/7", {{"vppbs", "3"}}).status, 404U);

    EXPECT_EQ(ask("PUT", "switch0/devices/dev-0-0/lds/0", {{"demand", "64GiB"}}).status, 204U);
    EXPECT_EQ(ask("PUT", "switch0/devices/dev-0-0/lds/0", {{"demand", "much"}}).status, 422U);
    EXPECT_EQ(ask("PUT", "switch0/devices/dev-0-0/lds/99", {{"demand", "1GiB"}}).status, 404U);
    EXPECT_EQ(ask("GET", "switch0/devices/dev-9-9/bandwidth").status, 404U);
    const json::value shared = json::parse(ask("GET", "switch0/devices/dev-0-0/bandwidth").body);
    EXPECT_EQ(shared.at("lds").at(0).at("granted"), gibibytes(32).value);
    EXPECT_EQ(shared.at("backpressure_percent"), 50);
}

TEST_F(FleetTest, ControlSpeaksHttp) {
    Control control(background_, *fleet_);
    const auto ask = [&](const std::string& method, const std::string& path,
                         std::map<std::string, std::string> query = {}) {
        return control.ask(method, path, std::move(query));
    };
    EXPECT_EQ(json::parse(ask("GET", "/v1/status").body).at("hosts"), 2);
    EXPECT_EQ(ask("PUT", "/v1/hosts/host1/faults/silence").status, 204U);
    EXPECT_EQ(json::parse(ask("GET", "/v1/hosts/host1").body).at("faults").at(0), "silence");
    EXPECT_EQ(ask("DELETE", "/v1/hosts/host1/faults/silence").status, 204U);
    EXPECT_EQ(ask("PUT", "/v1/hosts/host1/faults/reboot", {{"for", "soon"}}).status, 422U);
    EXPECT_EQ(ask("PUT", "/v1/hosts/host1/faults/measles").status, 404U);
    EXPECT_EQ(ask("PUT", "/v1/hosts/host9/faults/reboot").status, 404U);
    EXPECT_EQ(ask("DELETE", "/v1/switches/switch0/faults/power-off").status, 409U);
    EXPECT_EQ(ask("PUT", "/v1/devices/dev-0-0/faults/erase-fails", {{"for", "1ms"}}).status, 204U);
    EXPECT_EQ(ask("PUT", "/v1/devices/dev-0-0/faults/erase-does-nothing").status, 204U);
    EXPECT_EQ(ask("PUT", "/v1/devices/dev-0-0/faults/erase-twice").status, 404U);
    EXPECT_EQ(ask("PUT", "/v1/devices/dev-0-0/faults/worn", {{"for", "1h"}}).status, 204U);
    EXPECT_EQ(ask("PUT", "/v1/devices/dev-0-0/faults/failing").status, 204U);
    EXPECT_EQ(control.ask("POST", "/v1/faults", {}, "{fault: link-down, host: host1}").status, 201U);
    EXPECT_EQ(json::parse(ask("GET", "/v1/hosts/host1").body).at("faults").at(0), "link-down");
    EXPECT_EQ(json::parse(ask("GET", "/v1/faults").body).at("active"), 1);
    EXPECT_EQ(ask("DELETE", "/v1/faults").status, 204U);
    EXPECT_EQ(json::parse(ask("GET", "/v1/faults").body).at("active"), 0);
    EXPECT_TRUE(json::parse(ask("GET", "/v1/hosts/host1").body).at("faults").as_array().empty());
    EXPECT_TRUE(json::parse(ask("GET", "/v1/violations").body).at("violations").as_array().empty());
}

}  // namespace
}  // namespace memtide::emul::test

// A switch below another: host0 reaches both, over one cable.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/switch/commands.h"
#include "cxl-emul/switch/topology.h"
#include "tests/cxl-emul/switch/manager.h"

namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;
using testing::HasSubstr;

constexpr std::uint8_t kCable = 4;

std::string cascade_text(const std::string& cable, const std::string& at_lower = "{id: 3}") {
    return fmt::format(R"(name: test
switches:
  - name: switch0
    listen: ["tcp://127.0.0.1:0"]
    ports: [{{id: 0, host: host0}}, {{id: 2, device: sld0}}, {}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices: [{{name: sld0, kind: sld, serial: 1, size: 256MiB}}]
  - name: switch1
    listen: ["tcp://127.0.0.1:0"]
    ports: [{{id: 0, host: host0}}, {{id: 1, host: host1}}, {{id: 2, device: sld1}}, {}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices: [{{name: sld1, kind: sld, serial: 2, size: 256MiB}}]
)",
                       cable, at_lower);
}

std::string refusal(const std::string& cable, const std::string& at_lower = "{id: 3}") {
    const auto read = parse_topology(cascade_text(cable, at_lower), "test.yaml");
    return read ? "" : read.error().message;
}

class Cascade : public testing::Test {
  protected:
    const Topology topology_ =
        parse_topology(cascade_text("{id: 4, switch: switch1, upstream_port: 0}"), "test.yaml").value();
    SwitchModel upper_{topology_.switches[0]};
    SwitchModel lower_{topology_.switches[1]};

    template <typename Command>
    static fmapi::Message call(SwitchModel& model, const typename Command::Request& request) {
        return handle(model, fmapi::MctpType::kFmApi,
                      fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request)))
            .response;
    }
    fmapi::PhysicalPort cable() {
        return Manager::decode_success<fmapi::GetPhysicalPortStateResponse>(
                   call<fmapi::GetPhysicalPortState>(upper_, {{kCable}}))
            .ports.at(0);
    }
};

TEST_F(Cascade, PortOfTheCableIsADownstreamPortWithADeviceThatIsNoMemory) {
    const fmapi::PhysicalPort port = cable();
    EXPECT_EQ(port.config_state, fmapi::PortConfigState::kDownstream);
    EXPECT_EQ(port.device_type, fmapi::ConnectedDeviceType::kPcie);
    EXPECT_EQ(port.device_mode, fmapi::ConnectedDeviceMode::kCxl20);
    EXPECT_EQ(port.negotiated_link_width, 16);
    EXPECT_EQ(port.supported_lds, 0);
}

TEST_F(Cascade, NothingOfTheCableCanBeBoundOrTunnelledTo) {
    EXPECT_EQ(call<fmapi::BindVppb>(upper_, {0, 0, kCable, 0xffff}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(call<fmapi::BindVppb>(upper_, {0, 0, kCable, 0}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(call<fmapi::TunnelManagementCommand>(upper_, {.id = kCable, .command = {}}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(call<fmapi::SendLdConfigRequest>(upper_, {kCable, 0, 0, 0}).return_code,
              ReturnCode::kInvalidInput);
}

TEST_F(Cascade, DevicesOfTheLowerSwitchAreBoundAtTheLowerSwitch) {
    EXPECT_EQ(call<fmapi::BindVppb>(lower_, {0, 0, 2, 0xffff}).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(topology_.switches[1].vcs_of(HostId("host0"))->id, 0);
}

TEST_F(Cascade, PortWhoseCableIsOutShowsNothing) {
    upper_.ports[2].device_plugged = false;
    EXPECT_EQ(cable().device_type, fmapi::ConnectedDeviceType::kNone);
    EXPECT_EQ(cable().negotiated_link_width, 0);
}

TEST(CascadeTopology, MistakesAreNamed) {
    EXPECT_THAT(refusal("{id: 4, switch: switch2, upstream_port: 0}"), HasSubstr("no switch \"switch2\""));
    EXPECT_THAT(refusal("{id: 4, switch: switch1, upstream_port: 2}"), HasSubstr("not an upstream port"));
    EXPECT_THAT(refusal("{id: 4, switch: switch1, upstream_port: 7}"), HasSubstr("not an upstream port"));
    EXPECT_THAT(refusal("{id: 4, switch: switch1, upstream_port: 1}"), HasSubstr("\"host1\""));
    EXPECT_THAT(refusal("{id: 4, switch: switch0, upstream_port: 0}"), HasSubstr("below itself"));
    EXPECT_THAT(refusal("{id: 4, switch: switch1}"), HasSubstr("upstream_port"));
    EXPECT_THAT(refusal("{id: 4, device: sld0, switch: switch1, upstream_port: 0}"),
                HasSubstr("a host, a device or a switch"));
    EXPECT_THAT(
        refusal("{id: 4, switch: switch1, upstream_port: 0}, {id: 5, switch: switch1, upstream_port: 0}"),
        HasSubstr("cabled already"));
    EXPECT_THAT(
        refusal("{id: 4, switch: switch1, upstream_port: 0}", "{id: 4, switch: switch0, upstream_port: 0}"),
        HasSubstr("below itself"));
}

}  // namespace
}  // namespace memtide::emul::test

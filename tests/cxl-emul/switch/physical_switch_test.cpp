#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;

class PhysicalSwitch : public OverBothTransports {};
INSTANTIATE_TEST_SUITE_P(, PhysicalSwitch, both_transports(), transport_name);

TEST_P(PhysicalSwitch, IdentifiesItself) {
    const auto identity = manager_.get<fmapi::Identify>();
    EXPECT_EQ(identity.serial, 0x5357U);
    EXPECT_EQ(identity.component_type, fmapi::ComponentType::kSwitch);
    EXPECT_EQ(identity.max_message_size, 16);
}

TEST_P(PhysicalSwitch, CountsPortsAndVppbs) {
    ASSERT_EQ(manager_.bind(0, 1, kMldPort, 0), ReturnCode::kSuccess);
    const auto identity = manager_.get<fmapi::IdentifySwitchDevice>();
    EXPECT_EQ(identity.physical_ports, 5);
    EXPECT_EQ(identity.vcss, 2);
    EXPECT_TRUE(identity.active_ports.test(4));
    EXPECT_FALSE(identity.active_ports.test(5));
    EXPECT_TRUE(identity.active_vcss.test(1));
    EXPECT_EQ(identity.total_vppbs, 8);
    EXPECT_EQ(identity.bound_vppbs, 1);
}

TEST_P(PhysicalSwitch, ShowsWhatIsBehindEachPort) {
    const auto state =
        manager_.get<fmapi::GetPhysicalPortState>({{0, kMldPort, kSldPort, kEmptyPort, kNoPort}});
    ASSERT_EQ(state.ports.size(), 5U);
    EXPECT_EQ(state.ports[0].config_state, fmapi::PortConfigState::kUpstream);
    EXPECT_EQ(state.ports[0].negotiated_link_width, 16);
    EXPECT_EQ(state.ports[1].config_state, fmapi::PortConfigState::kDownstream);
    EXPECT_EQ(state.ports[1].device_type, fmapi::ConnectedDeviceType::kType3Mld);
    EXPECT_EQ(state.ports[1].supported_lds, 4);
    EXPECT_EQ(state.ports[2].device_type, fmapi::ConnectedDeviceType::kType3Sld);
    EXPECT_EQ(state.ports[3].device_type, fmapi::ConnectedDeviceType::kNone);
    EXPECT_EQ(state.ports[3].negotiated_link_width, 0);
    EXPECT_EQ(state.ports[3].link_flags & fmapi::kLinkPresent, 0);
    EXPECT_EQ(state.ports[4].config_state, fmapi::PortConfigState::kInvalidPort);
}

TEST_P(PhysicalSwitch, ShowsAHostWhoseLinkIsDown) {
    switch_.thread().get().set_host_link(HostId("host1"), false);
    const auto state = manager_.get<fmapi::GetPhysicalPortState>({{0, 1}});
    EXPECT_EQ(state.ports.at(0).negotiated_link_width, 16);
    EXPECT_EQ(state.ports.at(1).negotiated_link_width, 0);
}

TEST_P(PhysicalSwitch, ResetTakesADeviceAwayUntilItIsOver) {
    using enum fmapi::PortOperation;
    EXPECT_EQ(manager_.call<fmapi::PhysicalPortControl>({kMldPort, kAssertPerst}).return_code,
              ReturnCode::kSuccess);
    const auto port = manager_.get<fmapi::GetPhysicalPortState>({{kMldPort}}).ports.at(0);
    EXPECT_NE(port.link_flags & fmapi::kLinkPerstAsserted, 0);
    EXPECT_EQ(port.negotiated_link_width, 0);
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kRetryRequired);
    const auto tunnel = manager_.call<fmapi::TunnelManagementCommand>(
        {.id = kMldPort, .command = fmapi::encode_message(fmapi::make_request(Opcode::kIdentify, 0))});
    EXPECT_EQ(tunnel.return_code, ReturnCode::kRetryRequired);
    EXPECT_EQ(manager_.call<fmapi::PhysicalPortControl>({kMldPort, kDeassertPerst}).return_code,
              ReturnCode::kSuccess);
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
}

TEST_P(PhysicalSwitch, PortOfADeviceThatAHostHasIsNotReset) {
    ASSERT_EQ(manager_.bind(0, 0, kSldPort, kWholePort), ReturnCode::kSuccess);
    for (const auto operation : {fmapi::PortOperation::kAssertPerst, fmapi::PortOperation::kResetPpb})
        EXPECT_EQ(manager_.call<fmapi::PhysicalPortControl>({kSldPort, operation}).return_code,
                  ReturnCode::kBusy);
}

TEST_P(PhysicalSwitch, PortControlOfWhatCannotBeIsRefused) {
    using enum fmapi::PortOperation;
    EXPECT_EQ(manager_.call<fmapi::PhysicalPortControl>({kNoPort, kResetPpb}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.call<fmapi::PhysicalPortControl>({0, kResetPpb}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.call<fmapi::PhysicalPortControl>({kMldPort, fmapi::PortOperation{3}}).return_code,
              ReturnCode::kInvalidInput);
}

TEST_P(PhysicalSwitch, BridgesHaveAConfigurationSpace) {
    const auto read = [&](std::uint8_t port, std::uint16_t offset) {
        return manager_
            .get<fmapi::SendPpbConfigRequest>({port, fmapi::PpbConfigRequest::make_access(offset, false), 0})
            .read_data;
    };
    const auto write = [&](std::uint16_t offset, std::uint32_t data, std::uint8_t bytes) {
        manager_.get<fmapi::SendPpbConfigRequest>(
            {kMldPort, fmapi::PpbConfigRequest::make_access(offset, true, bytes), data});
    };
    EXPECT_EQ(read(0, 0x00), 0xa12819e5U);
    EXPECT_EQ(read(kMldPort, 0x00), 0xa12919e5U);
    EXPECT_EQ(read(kMldPort, 0x08) >> 8, 0x060400U);
    EXPECT_EQ(read(kMldPort, 0x40) >> 20 & 0xf, 6U);  // downstream port
    EXPECT_EQ(read(0, 0x40) >> 20 & 0xf, 5U);         // upstream port
    EXPECT_EQ(read(kMldPort, 0xffc), 0U);
    write(0x18, 0xff030201, 0x7);  // bus numbers; the latency timer is read-only
    EXPECT_EQ(read(kMldPort, 0x18), 0x00030201U);
    write(0x18, 0x00000900, 0x2);
    EXPECT_EQ(read(kMldPort, 0x18), 0x00030901U);
    write(0x00, 0xffffffff, 0xf);
    EXPECT_EQ(read(kMldPort, 0x00), 0xa12919e5U);
    manager_.call<fmapi::PhysicalPortControl>({kMldPort, fmapi::PortOperation::kResetPpb});
    EXPECT_EQ(read(kMldPort, 0x18), 0U);
    EXPECT_EQ(manager_.call<fmapi::SendPpbConfigRequest>({.port = kNoPort}).return_code,
              ReturnCode::kInvalidInput);
}

TEST_P(PhysicalSwitch, KeepsResponsesBelowTheLimitItWasGiven) {
    EXPECT_EQ(manager_.get<fmapi::GetResponseMessageLimit>().limit, 16);
    EXPECT_EQ(manager_.get<fmapi::SetResponseMessageLimit>({8}).limit, 8);
    EXPECT_EQ(manager_.get<fmapi::GetResponseMessageLimit>().limit, 8);
    EXPECT_EQ(manager_.call<fmapi::GetPhysicalPortState>({std::vector<std::uint8_t>(14)}).return_code,
              ReturnCode::kSuccess);
    EXPECT_EQ(manager_.call<fmapi::GetPhysicalPortState>({std::vector<std::uint8_t>(16)}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.call<fmapi::SetResponseMessageLimit>({7}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.call<fmapi::SetResponseMessageLimit>({17}).return_code, ReturnCode::kInvalidInput);
}

TEST_P(PhysicalSwitch, UnknownCommandIsUnsupported) {
    EXPECT_EQ(manager_.call(Opcode{0x9999}).return_code, ReturnCode::kUnsupported);
    EXPECT_EQ(manager_.call(Opcode{0}).return_code, ReturnCode::kUnsupported);
    EXPECT_EQ(manager_.call(Opcode::kGetLdInfo).return_code, ReturnCode::kUnsupported);  // the device's
    EXPECT_EQ(manager_.call(Opcode::kSanitize).return_code, ReturnCode::kUnsupported);   // the LD's
}

TEST_P(PhysicalSwitch, DeviceCommandsReachDevicesThroughTheTunnelOnly) {
    manager_.send(fmapi::make_request(Opcode::kIdentify, 5), fmapi::MctpType::kCci);
    EXPECT_EQ(manager_.receive().message.return_code, ReturnCode::kUnsupported);
}

TEST_P(PhysicalSwitch, PayloadOfTheWrongLengthIsRefused) {
    const Opcode commands[] = {Opcode::kSetResponseMessageLimit,
                               Opcode::kGetPhysicalPortState,
                               Opcode::kPhysicalPortControl,
                               Opcode::kSendPpbConfigRequest,
                               Opcode::kGetVirtualSwitchInfo,
                               Opcode::kBindVppb,
                               Opcode::kUnbindVppb,
                               Opcode::kGenerateAerEvent,
                               Opcode::kTunnelManagementCommand};
    for (const Opcode opcode : commands) {
        EXPECT_EQ(manager_.call(opcode).return_code, ReturnCode::kInvalidPayloadLength) << to_string(opcode);
        EXPECT_EQ(manager_.call(opcode, fmapi::Payload(500)).return_code, ReturnCode::kInvalidPayloadLength)
            << to_string(opcode);
    }
    for (const Opcode opcode :
         {Opcode::kIdentify, Opcode::kBackgroundOperationStatus, Opcode::kIdentifySwitchDevice,
          Opcode::kGetResponseMessageLimit, Opcode::kRequestAbortBackgroundOperation})
        EXPECT_EQ(manager_.call(opcode, fmapi::Payload(1)).return_code, ReturnCode::kInvalidPayloadLength)
            << to_string(opcode);
}

}  // namespace
}  // namespace memtide::emul::test

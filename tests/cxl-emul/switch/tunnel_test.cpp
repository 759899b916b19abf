#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::MctpType;
using fmapi::Opcode;
using fmapi::ReturnCode;
using fmapi::TunnelTarget;

class Tunnel : public OverBothTransports {
  protected:
    const fmapi::Message identify_ = fmapi::make_request(Opcode::kIdentify, 0x42);

    static fmapi::Message tunnel_message(std::uint8_t id, TunnelTarget target, MctpType type,
                                         const fmapi::Message& inner) {
        return fmapi::make_request(
            Opcode::kTunnelManagementCommand, 1,
            fmapi::encode(fmapi::TunnelRequest{
                .id = id, .target = target, .type = type, .command = fmapi::encode_message(inner)}));
    }
    ReturnCode outer_code(std::uint8_t id, TunnelTarget target, std::vector<std::byte> command) {
        return manager_
            .call<fmapi::TunnelManagementCommand>(
                {.id = id, .target = target, .type = MctpType::kCci, .command = std::move(command)})
            .return_code;
    }
};
INSTANTIATE_TEST_SUITE_P(, Tunnel, both_transports(), transport_name);

TEST_P(Tunnel, ReachesTheMldItsLdsAndAnSld) {
    const auto serial = [](const fmapi::Message& answer) {
        return Manager::decode_success<fmapi::IdentifyResponse>(answer).serial;
    };
    const auto of_mld = manager_.call_device(kMldPort, identify_);
    EXPECT_EQ(of_mld.tag, 0x42);
    EXPECT_EQ(serial(of_mld), 0x4d54000100000000U);
    EXPECT_EQ(serial(manager_.call_device(kMldPort, identify_, MctpType::kCci)), 0x4d54000100000000U);
    EXPECT_EQ(serial(manager_.call_ld(kMldPort, 0, identify_)), 0x4d54000100000001U);
    EXPECT_EQ(serial(manager_.call_ld(kMldPort, 3, identify_)), 0x4d54000100000004U);
    EXPECT_EQ(serial(manager_.call_device(kSldPort, identify_, MctpType::kCci)), 0x50U);
}

TEST_P(Tunnel, ToNowhereIsRefused) {
    const auto command = fmapi::encode_message(identify_);
    EXPECT_EQ(outer_code(kNoPort, TunnelTarget::kPort, command), ReturnCode::kInvalidInput);
    EXPECT_EQ(outer_code(kEmptyPort, TunnelTarget::kPort, command), ReturnCode::kInvalidInput);
    EXPECT_EQ(outer_code(0, TunnelTarget::kPort, command), ReturnCode::kInvalidInput);  // a host
    EXPECT_EQ(outer_code(kMldPort, TunnelTarget::kLdPool, command), ReturnCode::kInvalidInput);
    EXPECT_EQ(outer_code(kMldPort, TunnelTarget{2}, command), ReturnCode::kInvalidInput);
}

TEST_P(Tunnel, ToAnLdThatDoesNotExistIsRefused) {
    const auto to_ld = tunnel_message(4, TunnelTarget::kLd, MctpType::kCci, identify_);
    EXPECT_EQ(manager_.call_device(kMldPort, to_ld).return_code, ReturnCode::kInvalidInput);
    const auto to_the_last = tunnel_message(255, TunnelTarget::kLd, MctpType::kCci, identify_);
    EXPECT_EQ(manager_.call_device(kMldPort, to_the_last).return_code, ReturnCode::kInvalidInput);
    const auto to_nothing = tunnel_message(0, TunnelTarget{2}, MctpType::kCci, identify_);
    EXPECT_EQ(manager_.call_device(kMldPort, to_nothing).return_code, ReturnCode::kInvalidInput);
}

// As managers did it that took target type 1 for an LD.
TEST_P(Tunnel, ToAnLdByTheLdPoolsTypeReachesIt) {
    const auto old = tunnel_message(1, TunnelTarget::kLdPool, MctpType::kCci, identify_);
    const auto answer = Manager::decode_success<fmapi::TunnelResponse>(manager_.call_device(kMldPort, old));
    EXPECT_EQ(Manager::decode_success<fmapi::IdentifyResponse>(fmapi::decode_message(answer.response).value())
                  .serial,
              0x4d54000100000002U);
}

TEST_P(Tunnel, FiveHundredInsideEachOtherAreAnsweredAtTheSecond) {
    fmapi::Message message = identify_;
    for (int i = 0; i < 500; ++i) message = tunnel_message(0, TunnelTarget::kLd, MctpType::kFmApi, message);
    EXPECT_EQ(manager_.call_device(kMldPort, message).return_code, ReturnCode::kSuccess);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, message).return_code, ReturnCode::kUnsupported);
    EXPECT_EQ(manager_.get<fmapi::Identify>().serial, 0x5357U);
}

TEST_P(Tunnel, InsideTheTunnelToAnLdThereIsNoOther) {
    const auto third = tunnel_message(0, TunnelTarget::kLd, MctpType::kCci, identify_);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, third).return_code, ReturnCode::kUnsupported);
    EXPECT_EQ(manager_.call_device(kSldPort, third, MctpType::kCci).return_code, ReturnCode::kUnsupported);
}

TEST_P(Tunnel, WithoutAWholeRequestInsideIsRefused) {
    auto command = fmapi::encode_message(identify_);
    EXPECT_EQ(outer_code(kMldPort, TunnelTarget::kPort, {}), ReturnCode::kInvalidInput);
    EXPECT_EQ(outer_code(kMldPort, TunnelTarget::kPort, {command.begin(), command.end() - 1}),
              ReturnCode::kInvalidInput);
    auto response = fmapi::encode_message(fmapi::make_response(identify_, ReturnCode::kSuccess));
    EXPECT_EQ(outer_code(kMldPort, TunnelTarget::kPort, response), ReturnCode::kInvalidInput);
    auto longer = command;
    longer.push_back({});
    EXPECT_EQ(outer_code(kMldPort, TunnelTarget::kPort, longer), ReturnCode::kInvalidInput);
    command[5] = std::byte{200};  // announces a payload that is not there
    EXPECT_EQ(outer_code(kMldPort, TunnelTarget::kPort, command), ReturnCode::kInvalidInput);
}

TEST_P(Tunnel, InnerMistakesAreInTheInnerReturnCode) {
    EXPECT_EQ(manager_.call_device(kMldPort, fmapi::make_request(Opcode::kBindVppb, 0)).return_code,
              ReturnCode::kUnsupported);
    EXPECT_EQ(manager_.call_device(kMldPort, fmapi::make_request(Opcode::kSetLdAllocations, 0)).return_code,
              ReturnCode::kInvalidPayloadLength);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, fmapi::make_request(Opcode{0x4567}, 0)).return_code,
              ReturnCode::kUnsupported);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, identify_, MctpType::kFmApi).return_code,
              ReturnCode::kUnsupported);
}

}  // namespace
}  // namespace memtide::emul::test

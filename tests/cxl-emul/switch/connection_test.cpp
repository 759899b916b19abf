#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;

std::vector<std::byte> packets_of(const fmapi::Message& message) {
    return fmapi::to_packets({.route = {}, .type = fmapi::MctpType::kFmApi, .message = message});
}

class Connection : public OverBothTransports {
  protected:
    // The switch still answers others.
    void expect_service() {
        Manager other(address());
        EXPECT_EQ(other.get<fmapi::Identify>().serial, 0x5357U);
    }
};
INSTANTIATE_TEST_SUITE_P(, Connection, both_transports(), transport_name);

TEST_P(Connection, TwoManagersAreServedAtOnce) {
    Manager other(address());
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(other.vppb(0, 0).binding, fmapi::VppbBinding::kBoundLd);
    EXPECT_EQ(other.unbind(0, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.vppb(0, 0).binding, fmapi::VppbBinding::kUnbound);
}

TEST_P(Connection, AnswerCarriesTheRequestsRouteAndTag) {
    fmapi::MctpMessage request{.route = {.destination = 8, .source = 9, .tag = 5, .tag_owner = true},
                               .type = fmapi::MctpType::kFmApi,
                               .message = fmapi::make_request(Opcode::kIdentify, 0xab)};
    manager_.send(fmapi::to_packets(request));
    const auto answer = manager_.receive();
    EXPECT_EQ(answer.route, fmapi::reply_route(request.route));
    EXPECT_EQ(answer.type, fmapi::MctpType::kFmApi);
    EXPECT_EQ(answer.message.tag, 0xab);
    EXPECT_TRUE(answer.message.is_response);
}

TEST_P(Connection, RequestsInOneWriteAreAnsweredInOrder) {
    std::vector<std::byte> all;
    for (std::uint8_t tag = 0; tag < 200; ++tag) {
        const auto packets =
            packets_of(fmapi::make_request(tag % 2 == 0 ? Opcode::kIdentify : Opcode{0x7777}, tag));
        all.insert(all.end(), packets.begin(), packets.end());
    }
    manager_.send(all);
    for (std::uint8_t tag = 0; tag < 200; ++tag) {
        const auto answer = manager_.receive().message;
        EXPECT_EQ(answer.tag, tag);
        EXPECT_EQ(answer.return_code, tag % 2 == 0 ? ReturnCode::kSuccess : ReturnCode::kUnsupported);
    }
}

TEST_P(Connection, RequestMayComeByteByByte) {
    const auto packets = packets_of(fmapi::make_request(
        Opcode::kGetPhysicalPortState, 3,
        fmapi::encode(fmapi::GetPhysicalPortStateRequest{std::vector<std::uint8_t>(100)})));
    ASSERT_GT(packets.size(), fmapi::kPacketSize);
    for (const std::byte byte : packets) manager_.send(std::span(&byte, 1));
    EXPECT_EQ(manager_.receive().message.payload.size(), 4 + 16 * 100U);
}

TEST_P(Connection, LargeRequestsAndAnswersTakeManyPackets) {
    const fmapi::GetVirtualSwitchInfoRequest request{0, 255, std::vector<std::uint8_t>(255)};
    const auto answer = manager_.get<fmapi::GetVirtualSwitchInfo>(
        request, fmapi::GetVirtualSwitchInfoResponse::answering(request));
    EXPECT_EQ(answer.vcss.size(), 255U);
    EXPECT_EQ(answer.vcss[254].vppbs.size(), 4U);
}

TEST_P(Connection, GarbageDropsItAndNothingElse) {
    std::minstd_rand random(1);
    std::vector<std::byte> garbage(1000);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    manager_.send(garbage);
    EXPECT_TRUE(manager_.is_dropped());
    expect_service();
}

TEST_P(Connection, HttpIsDropped) {
    const std::string request =
        "GET / HTTP/1.1\r\nHost: switch0\r\nUser-Agent: somebody who is quite lost here\r\n\r\n";
    manager_.send(std::as_bytes(std::span(request)));
    EXPECT_TRUE(manager_.is_dropped());
    expect_service();
}

TEST_P(Connection, MessageThatAnnouncesTooMuchIsDropped) {
    auto packets = packets_of(fmapi::make_request(Opcode::kIdentify, 0));
    packets[fmapi::kPacketHeaderSize + 1 + 7] = std::byte{0x1f};  // 2 MiB of payload
    manager_.send(packets);
    EXPECT_TRUE(manager_.is_dropped());
    expect_service();
}

TEST_P(Connection, LengthOfAllOnesIsDropped) {
    auto packets = packets_of(fmapi::make_request(Opcode::kIdentify, 0));
    for (std::size_t byte = 5; byte < 8; ++byte)
        packets[fmapi::kPacketHeaderSize + 1 + byte] = std::byte{0xff};
    manager_.send(packets);
    EXPECT_TRUE(manager_.is_dropped());
    expect_service();
}

TEST_P(Connection, EndOfAMessageThatNeverBeganIsDropped) {
    const auto packets = packets_of(fmapi::make_request(Opcode::kIdentify, 0, fmapi::Payload(200)));
    manager_.send(std::span(packets).subspan(fmapi::kPacketSize));
    EXPECT_TRUE(manager_.is_dropped());
    expect_service();
}

TEST_P(Connection, AThousandConnectionsLeaveItAtItsLimit) {
    std::vector<std::unique_ptr<Manager>> crowd;
    for (int i = 0; i < 1000; ++i) crowd.push_back(std::make_unique<Manager>(address()));
    expect_service();
    EXPECT_EQ(crowd.back()->get<fmapi::Identify>().serial, 0x5357U);
    EXPECT_TRUE(crowd.front()->is_dropped());
}

TEST_P(Connection, PacketOutOfSequenceIsDropped) {
    auto packets = packets_of(fmapi::make_request(Opcode::kIdentify, 0, fmapi::Payload(200)));
    packets[fmapi::kPacketSize + 3] ^= std::byte{0x20};
    manager_.send(packets);
    EXPECT_TRUE(manager_.is_dropped());
    expect_service();
}

TEST_P(Connection, HalfAMessageAndThenNothingIsDropped) {
    const auto packets = packets_of(fmapi::make_request(Opcode::kIdentify, 0, fmapi::Payload(200)));
    manager_.send(std::span(packets).first(fmapi::kPacketSize + 10));
    manager_.close_sending();
    EXPECT_TRUE(manager_.is_dropped());
    expect_service();
}

TEST_P(Connection, AnswersArriveThoughThePeerSendsNoMore) {
    manager_.send(fmapi::make_request(Opcode::kIdentify, 1));
    manager_.close_sending();
    EXPECT_EQ(manager_.receive().message.return_code, ReturnCode::kSuccess);
    EXPECT_TRUE(manager_.is_dropped());
}

TEST_P(Connection, ResponsesToNothingAreIgnored) {
    manager_.send(
        fmapi::make_response(fmapi::make_request(Opcode::kEventNotification, 9), ReturnCode::kSuccess));
    EXPECT_EQ(manager_.get<fmapi::Identify>().serial, 0x5357U);
}

TEST_P(Connection, PeerThatNeverReadsDoesNotHoldUpOthers) {
    const fmapi::GetVirtualSwitchInfoRequest large{0, 255, std::vector<std::uint8_t>(255)};
    const auto packets =
        packets_of(fmapi::make_request(Opcode::kGetVirtualSwitchInfo, 0, fmapi::encode(large)));
    for (int i = 0; i < 100; ++i) manager_.send(packets);  // half a megabyte of answers
    expect_service();
}

// A switch with little room and little patience.
class ConnectionLimit : public ::testing::TestWithParam<Transport> {
  protected:
    static constexpr std::chrono::milliseconds kPatience{300};
    static constexpr std::size_t kRoom = 3;
    [[nodiscard]] const std::string& address() const {
        return GetParam() == Transport::kTcp ? switch_.tcp() : switch_.unix_socket();
    }
    static bool is_served(Manager& manager) { return manager.get<fmapi::Identify>().serial == 0x5357U; }
    // Connections that have been idle since then, in this order.
    void fill() {
        for (auto& manager : crowd_) {
            manager = std::make_unique<Manager>(address());
            ASSERT_TRUE(is_served(*manager));
        }
    }
    TestSwitch switch_{{.bind = "20s"}, no_hotplug(), {.connections = kRoom, .patience = kPatience}};
    std::array<std::unique_ptr<Manager>, kRoom> crowd_;
};
INSTANTIATE_TEST_SUITE_P(, ConnectionLimit, both_transports(), transport_name);

TEST_P(ConnectionLimit, OneMoreTakesThePlaceOfTheOneThatIsIdleLongest) {
    fill();
    ASSERT_TRUE(is_served(*crowd_[0]));  // which leaves the second as the longest idle one
    Manager one_more(address());
    EXPECT_TRUE(is_served(one_more));
    EXPECT_TRUE(crowd_[1]->is_dropped());
    EXPECT_TRUE(is_served(*crowd_[0]));
    EXPECT_TRUE(is_served(*crowd_[2]));
}

TEST_P(ConnectionLimit, SilentOnesLockNobodyOut) {
    std::vector<std::unique_ptr<Manager>> silent;
    for (std::size_t i = 0; i < 10 * kRoom; ++i) silent.push_back(std::make_unique<Manager>(address()));
    Manager manager(address());
    EXPECT_TRUE(is_served(manager));
}

TEST_P(ConnectionLimit, OneWithACommandUnderWayIsNotIdle) {
    fill();
    ASSERT_EQ(crowd_[0]->call<fmapi::BindVppb>({0, 0, kMldPort, 0}).return_code,
              ReturnCode::kBackgroundStarted);
    ASSERT_TRUE(is_served(*crowd_[1]));
    ASSERT_TRUE(is_served(*crowd_[2]));
    Manager one_more(address());
    EXPECT_TRUE(is_served(one_more));
    EXPECT_TRUE(crowd_[1]->is_dropped());
    EXPECT_TRUE(is_served(*crowd_[0]));
}

TEST_P(ConnectionLimit, HalfAMessageIsWaitedForAndNoLonger) {
    Manager manager(address());
    const auto packets = packets_of(fmapi::make_request(Opcode::kIdentify, 0, fmapi::Payload(200)));
    const auto begun = std::chrono::steady_clock::now();
    manager.send(std::span(packets).first(fmapi::kPacketSize + 10));
    EXPECT_TRUE(manager.is_dropped());
    EXPECT_GE(std::chrono::steady_clock::now() - begun, kPatience);
}

TEST_P(ConnectionLimit, BytesThatComeOneByOneBuyNoTime) {
    Manager manager(address());
    const auto packets = packets_of(fmapi::make_request(Opcode::kIdentify, 0, fmapi::Payload(60'000)));
    bool refused = false;
    const auto deadline = std::chrono::steady_clock::now() + 50 * kPatience;
    for (std::size_t i = 0; !refused && std::chrono::steady_clock::now() < deadline; ++i) {
        try {
            manager.send(std::span(packets).subspan(i, 1));
        } catch (const std::runtime_error&) {
            refused = true;
        }
        std::this_thread::sleep_for(kPatience / 10);
    }
    EXPECT_TRUE(refused);
}

TEST_P(ConnectionLimit, AnswersThatAreNotReadEndIt) {
    Manager manager(address());
    const fmapi::GetVirtualSwitchInfoRequest large{0, 255, std::vector<std::uint8_t>(255)};
    const auto packets =
        packets_of(fmapi::make_request(Opcode::kGetVirtualSwitchInfo, 0, fmapi::encode(large)));
    // More answers than any socket buffer takes; the switch does not read on while one of them waits.
    const auto send_all = [&] {
        for (int i = 0; i < 20'000; ++i) manager.send(packets);
    };
    EXPECT_THROW(send_all(), std::runtime_error);
    Manager other(address());
    EXPECT_TRUE(is_served(other));
}

TEST_P(ConnectionLimit, SilenceBetweenMessagesIsNoFault) {
    Manager manager(address());
    ASSERT_TRUE(is_served(manager));
    std::this_thread::sleep_for(3 * kPatience);
    EXPECT_TRUE(is_served(manager));
}

}  // namespace
}  // namespace memtide::emul::test

// Ways to a switch other than a stream, switches that connect, and commands that are sent again.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/cxl_mem.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fmapi/capture/capture.h"
#include "common/fmapi/capture/session_capture.h"
#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/captured_transport.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/fmapi/device_transport.h"
#include "fabric-manager/fmapi/session.h"
#include "tests/fabric-manager/fmapi/peer.h"

namespace memtide::fm {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using fmapi::Opcode;
using fmapi::ReturnCode;
using testing::HasSubstr;

TEST(SwitchAddress, ReadsDevicesAndMctpEndpoints) {
    EXPECT_EQ(*parse_switch_address("cxl:///dev/cxl/switch0"), (SwitchAddress{.device = "/dev/cxl/switch0"}));
    EXPECT_EQ(*parse_switch_address("mctp://9@1"), (SwitchAddress{.mctp = MctpEndpoint{9, 1}}));
    for (const char* text : {"cxl://", "cxl:///", "cxl://dev/cxl/mem0", "mctp://", "mctp://9", "mctp://7@1",
                             "mctp://255@1", "mctp://256@1", "mctp://9@", "mctp://9@x", "mctp://@1"})
        EXPECT_FALSE(parse_switch_address(text)) << text;
}

TEST(SwitchListenerAddress, OtherThanLoopbackNamesWhoMayCome) {
    EXPECT_TRUE(parse_switch_listener("tcp://127.0.0.1:2651", {}));
    EXPECT_TRUE(parse_switch_listener("tcp://[::1]:2651", {}));
    EXPECT_TRUE(parse_switch_listener("tcp://0.0.0.0:2651", {"10.0.0.7"}));
    EXPECT_THAT(parse_switch_listener("tcp://0.0.0.0:2651", {}).error().message,
                HasSubstr("from: [ADDRESS]"));
    for (const char* text : {"", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://localhost:1", "unix:///a"})
        EXPECT_FALSE(parse_switch_listener(text, {})) << text;
    EXPECT_FALSE(parse_switch_listener("tcp://127.0.0.1:2651", {"everybody"}));
}

class OverATransport : public testing::Test {
  protected:
    Result<fmapi::Message> ask(Opcode opcode, fmapi::Payload payload = {}) {
        Result<fmapi::Message> answer = fail(ErrorCode::kInternal, "did not end");
        test::run(io_, [&]() -> awaitable<void> {
            Ask asked{.opcode = opcode, .payload = std::move(payload)};
            answer = co_await Session::exchange(session_, std::move(asked));
        });
        return answer;
    }
    void open_device(const std::string& path, DeviceControl control) {
        session_ = std::make_shared<Session>(
            io_.get_executor(), make_device_transport(io_.get_executor(), path, std::move(control)),
            ClientOptions{.address = "cxl://" + path, .dialect = std::string(kDetectDialect)});
    }
    void TearDown() override {
        if (session_) session_->close();
        session_.reset();
    }

    asio::io_context io_;
    std::shared_ptr<Session> session_;
};

TEST_F(OverATransport, AKernelCommandGoesByItsNumber) {
    open_device("/dev/null", [](int, unsigned long request, void* argument) {
        auto& command = *static_cast<cxl_send_command*>(argument);
        if (request != CXL_MEM_SEND_COMMAND || command.id != CXL_MEM_COMMAND_ID_GET_HEALTH_INFO)
            return -EINVAL;
        std::memset(reinterpret_cast<void*>(command.out.payload), 7, 18);
        command.out.size = 18;
        return 0;
    });
    const auto answer = ask(Opcode::kGetHealthInfo);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->payload, fmapi::Payload(18, std::byte{7}));
}

TEST_F(OverATransport, WithoutAStreamMessagesAreCapturedAsOnOne) {
    const std::string pcap = fmt::format("/tmp/memtide-device-{}.pcap", ::getpid());
    {
        const auto file = fmapi::SessionCapture::open(pcap).value();
        auto device =
            make_device_transport(io_.get_executor(), "/dev/null", [](int, unsigned long, void* argument) {
                static_cast<cxl_send_command*>(argument)->out.size = 0;
                static_cast<cxl_send_command*>(argument)->retval =
                    static_cast<std::uint32_t>(ReturnCode::kBusy);
                return 0;
            });
        session_ = std::make_shared<Session>(
            io_.get_executor(),
            std::make_unique<CapturedTransport>(std::move(device), file->of_switch("mem0")),
            ClientOptions{.address = "cxl:///dev/null", .dialect = std::string(kDetectDialect)});
    }
    const auto answer = ask(Opcode::kGetHealthInfo);
    ASSERT_TRUE(answer) << answer.error().message;
    const auto capture = fmapi::read_capture_file(pcap);
    std::remove(pcap.c_str());
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 2U);
    EXPECT_EQ(capture->messages[0].message->opcode, Opcode::kGetHealthInfo);
    EXPECT_EQ(capture->messages[1].message, *answer);
    EXPECT_EQ(capture->messages[1].answers, 0U);
}

TEST_F(OverATransport, OtherCommandsGoRawWithRoomThatTheDeviceHas) {
    std::vector<std::uint32_t> tried;
    open_device("/dev/null", [&](int, unsigned long, void* argument) {
        auto& command = *static_cast<cxl_send_command*>(argument);
        tried.push_back(command.out.size);
        if (command.id != CXL_MEM_COMMAND_ID_RAW || command.raw.opcode != 0x5100) return -EPERM;
        if (command.out.size > 2048) return -EINVAL;
        command.out.size = 0;
        command.retval = static_cast<std::uint32_t>(ReturnCode::kBusy);
        return 0;
    });
    for (int i = 0; i < 2; ++i) {
        const auto answer = ask(Opcode::kIdentifySwitchDevice);
        ASSERT_TRUE(answer) << answer.error().message;
        EXPECT_EQ(answer->return_code, ReturnCode::kBusy);
    }
    EXPECT_THAT(tried, testing::ElementsAre(65536, 4096, 2048, 2048));
}

TEST_F(OverATransport, AKernelWithoutRawCommandsIsNamed) {
    open_device("/dev/null", [](int, unsigned long, void*) { return -EPERM; });
    const auto answer = ask(Opcode::kIdentifySwitchDevice);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kPermission);
    EXPECT_THAT(answer.error().message, HasSubstr("CONFIG_CXL_MEM_RAW_COMMANDS"));
    // A later command is none the worse for it.
    EXPECT_FALSE(ask(Opcode::kIdentifySwitchDevice));
    EXPECT_EQ(session_->connections(), 1U);
}

TEST_F(OverATransport, AFileThatIsNoCxlDeviceIsNamed) {
    open_device("/dev/null", system_device_control());
    const auto answer = ask(Opcode::kGetHealthInfo);
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().message, HasSubstr("no device of the CXL driver"));
}

TEST_F(OverATransport, ADeviceThatIsNotThereOrGoesIsUnavailable) {
    open_device("/dev/cxl/no-such-device", system_device_control());
    EXPECT_EQ(ask(Opcode::kIdentify).error().code, ErrorCode::kUnavailable);
    open_device("/dev/null", [](int, unsigned long, void*) { return -ENODEV; });
    const auto gone = ask(Opcode::kGetHealthInfo);
    EXPECT_EQ(gone.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(gone.error().message, HasSubstr("is gone"));
}

// Where this machine has such a device: a guest of a rack, with a type-3 device bound.
TEST_F(OverATransport, TheMemoryDeviceOfThisMachineAnswers) {
    constexpr const char* kDevice = "/dev/cxl/mem0";
    if (::access(kDevice, R_OK | W_OK) != 0) GTEST_SKIP() << "there is no " << kDevice << " here";
    open_device(kDevice, system_device_control());
    const auto identity = ask(Opcode::kIdentifyMemoryDevice);
    ASSERT_TRUE(identity) << identity.error().message;
    const auto decoded = fmapi::decode<fmapi::IdentifyMemoryDeviceResponse>(identity->payload);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_GT(decoded->total_capacity, 0U);
    // Whatever this kernel and this device make of the others, each ends.
    for (const Opcode opcode : {Opcode::kIdentify, Opcode::kGetHealthInfo, Opcode::kIdentifySwitchDevice}) {
        const auto answer = ask(opcode);
        std::printf("%s: %s\n", fmapi::to_string(opcode).c_str(),
                    answer ? fmapi::to_string(answer->return_code).c_str() : answer.error().message.c_str());
    }
}

TEST(MctpEndpointOfASwitch, SaysWhenTheKernelHasNoMctp) {
    if (const int fd = ::socket(AF_MCTP, SOCK_DGRAM, 0); fd >= 0) {
        ::close(fd);
        GTEST_SKIP() << "this kernel has AF_MCTP";
    }
    asio::io_context io;
    const auto client = make_fm_api_client(io.get_executor(), {.address = "mctp://9@1"}).value();
    Result<fmapi::IdentifyResponse> answer = fail(ErrorCode::kInternal, "did not end");
    test::run(io, [&]() -> awaitable<void> { answer = co_await client->identify(Target::the_switch()); });
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(answer.error().message, HasSubstr("this kernel has no AF_MCTP"));
}

// --- commands that are sent again ---

class Repeating : public testing::Test {
  protected:
    Repeating() {
        peer_.handle([this](test::PeerConnection& connection, fmapi::MctpMessage request) -> awaitable<void> {
            if (peer_.connections <= hang_up_) {
                connection.close();
                co_return;
            }
            fmapi::Payload payload;
            if (request.message.opcode == Opcode::kIdentify)
                payload = fmapi::encode(fmapi::IdentifyResponse{.serial = 7});
            co_await connection.succeed(request, std::move(payload));
        });
        ClientOptions options = test::patient(peer_);
        options.repetitions = 1;
        client_ = make_fm_api_client(io_.get_executor(), std::move(options)).value();
    }
    template <typename Make>
    auto result_of(Make make) {
        using R = typename decltype(make())::value_type;
        R result = fail(ErrorCode::kInternal, "did not end");
        test::run(io_, [&]() -> awaitable<void> { result = co_await make(); });
        return result;
    }

    asio::io_context io_;
    test::Peer peer_{io_};
    int hang_up_ = 1;  // on so many connections
    std::unique_ptr<FmApiClient> client_;
};

TEST_F(Repeating, ARepeatableCommandWhoseConnectionBrokeIsAskedOnceMore) {
    EXPECT_TRUE(result_of([&] { return client_->identify(Target::the_switch()); }));
    EXPECT_EQ(peer_.connections, 2);
    EXPECT_EQ(client_->connections(), 2U);
}

TEST_F(Repeating, OnceMoreAndNoOftener) {
    hang_up_ = 2;
    EXPECT_EQ(result_of([&] { return client_->identify(Target::the_switch()); }).error().code,
              ErrorCode::kUnavailable);
    EXPECT_EQ(peer_.connections, 2);
}

TEST_F(Repeating, WhatMayNotBeDoneTwiceIsNotAskedTwice) {
    EXPECT_FALSE(result_of([&] { return client_->bind({.vcs = 0, .vppb = 0, .port = 2, .ld = 0}); }));
    EXPECT_EQ(peer_.requests.size(), 1U);
    hang_up_ = 2;
    EXPECT_FALSE(result_of([&] { return client_->sanitize(Target::the_switch()); }));
    EXPECT_EQ(peer_.requests.size(), 2U);
    hang_up_ = 3;
    EXPECT_FALSE(result_of([&] { return client_->set_ld_allocations(2, 0, {{1, 0}}); }));
    EXPECT_EQ(peer_.requests.size(), 3U);
}

TEST_F(Repeating, IdentifyMayLeaveOutTheSubsystemIds) {
    peer_.handle([](test::PeerConnection& connection, fmapi::MctpMessage request) -> awaitable<void> {
        fmapi::Payload payload = fmapi::encode(fmapi::IdentifyResponse{.vendor = 1, .serial = 7});
        payload.erase(payload.begin() + 4, payload.begin() + 8);
        co_await connection.succeed(request, std::move(payload));
    });
    const auto answer = result_of([&] { return client_->identify(Target::the_switch()); });
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->vendor, 1);
    EXPECT_EQ(answer->serial, 7U);
}

}  // namespace
}  // namespace memtide::fm

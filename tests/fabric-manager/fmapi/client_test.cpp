// The client against a switch that behaves.
#include "fabric-manager/fmapi/client.h"

#include <filesystem>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fabric-manager/fmapi/address.h"
#include "tests/fabric-manager/fmapi/peer.h"

namespace memtide::fm {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using fmapi::MctpMessage;
using fmapi::MctpType;
using fmapi::Message;
using fmapi::Opcode;
using fmapi::ReturnCode;
using test::PeerConnection;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SwitchAddress, ReadsTcpAndUnix) {
    EXPECT_EQ(*parse_switch_address("tcp://switch0:2650"),
              (SwitchAddress{.host = "switch0", .port = "2650"}));
    EXPECT_EQ(*parse_switch_address("tcp://[::1]:2650"), (SwitchAddress{.host = "::1", .port = "2650"}));
    EXPECT_EQ(*parse_switch_address("unix:///run/s.sock"), (SwitchAddress{.path = "/run/s.sock"}));
}

TEST(SwitchAddress, RefusesWhatItCannotConnectTo) {
    for (const std::string text :
         {"", "switch0:2650", "http://a:1", "tcp://a", "tcp://:1", "tcp://a:0", "tcp://a:65536", "tcp://a:1x",
          "tcp://::1:2650", "unix://run/s.sock", "unix://"}) {
        const auto address = parse_switch_address(text);
        ASSERT_FALSE(address) << text;
        EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument);
    }
    EXPECT_FALSE(parse_switch_address("unix:///" + std::string(200, 'a')));
    asio::io_context io;
    EXPECT_FALSE(make_fm_api_client(io.get_executor(), {.address = "nonsense"}));
}

class Client : public testing::Test {
  protected:
    Client() { client = make_fm_api_client(io.get_executor(), test::patient(peer)).value(); }

    // Every request is answered with this payload and code.
    void always(fmapi::Payload payload, ReturnCode code = ReturnCode::kSuccess) {
        peer.handle([payload, code](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
            Message response = fmapi::make_response(request.message, code, payload);
            co_await connection.answer(request, std::move(response));
        });
    }
    // The result of the call that `make` makes.
    template <typename Make>
    auto result_of(Make make) {
        using R = typename decltype(make())::value_type;
        R result = fail(ErrorCode::kInternal, "did not end");
        test::run(io, [&]() -> awaitable<void> { result = co_await make(); });
        return result;
    }

    asio::io_context io;
    test::Peer peer{io};
    std::unique_ptr<FmApiClient> client;
};

TEST_F(Client, BindSendsTheRequestAndSaysThatItRunsInTheBackground) {
    always({}, ReturnCode::kBackgroundStarted);
    const auto started = result_of([&] { return client->bind({.vcs = 1, .vppb = 2, .port = 3, .ld = 4}); });
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_EQ(*started, Completion::kInBackground);
    ASSERT_EQ(peer.requests.size(), 1U);
    EXPECT_EQ(peer.requests[0].opcode, Opcode::kBindVppb);
    EXPECT_EQ(*fmapi::decode<fmapi::BindVppbRequest>(peer.requests[0].payload),
              (fmapi::BindVppbRequest{1, 2, 3, 4}));
}

TEST_F(Client, BindOverAConnectionThatIsGoneIsNotSent) {
    always({});
    EXPECT_EQ(client->connections(), 0U);
    ASSERT_TRUE(result_of([&] { return client->bind({.vcs = 1}); }));
    EXPECT_EQ(client->connections(), 1U);
    EXPECT_TRUE(result_of([&] { return client->bind({.vcs = 1}, 1); }));
    peer.stop();
    peer.start();
    const auto refused = result_of([&] { return client->bind({.vcs = 2}, 1); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(peer.requests.size(), 2U);
    EXPECT_TRUE(result_of([&] { return client->bind({.vcs = 2}); }));
    EXPECT_EQ(client->connections(), 2U);
}

TEST_F(Client, UnbindMayBeDoneAtOnce) {
    always({});
    EXPECT_EQ(*result_of([&] { return client->unbind({.vcs = 1, .vppb = 2}); }), Completion::kDone);
}

TEST_F(Client, PhysicalPortsComeInTheOrderAskedFor) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        fmapi::GetPhysicalPortStateResponse response;
        const auto asked = fmapi::decode<fmapi::GetPhysicalPortStateRequest>(request.message.payload);
        for (const auto id : asked->ports) response.ports.push_back({.port = id});
        co_await connection.succeed(request, fmapi::encode(response));
    });
    std::vector<std::uint8_t> ids;
    for (int i = 0; i < 256; ++i) ids.push_back(static_cast<std::uint8_t>(255 - i));
    const auto ports = result_of([&] { return client->physical_ports(ids); });
    ASSERT_TRUE(ports) << ports.error().message;
    ASSERT_EQ(ports->size(), 256U);
    EXPECT_EQ((*ports)[255].port, 0);
    EXPECT_EQ(peer.requests.size(), 2U);  // 255 ids are all that one request can hold
}

TEST_F(Client, PortsThatWereNotAskedForAreAProtocolError) {
    always(fmapi::encode(fmapi::GetPhysicalPortStateResponse{{fmapi::PhysicalPort{.port = 9}}}));
    const auto ports = result_of([&] { return client->physical_ports({1}); });
    ASSERT_FALSE(ports);
    EXPECT_EQ(ports.error().code, ErrorCode::kProtocol);
}

TEST_F(Client, VirtualSwitchesComeWithAllTheirVppbs) {
    fmapi::GetVirtualSwitchInfoResponse response;
    response.vcss = {{.vcs = 3, .state = fmapi::VcsState::kEnabled, .total_vppbs = 2, .vppbs = {{}, {}}}};
    response.vcss[0].vppbs[1] = {fmapi::VppbBinding::kBoundLd, 2, 1};
    always(fmapi::encode(response));
    const auto vcss = result_of([&] { return client->virtual_switches({3}); });
    ASSERT_TRUE(vcss) << vcss.error().message;
    EXPECT_EQ((*vcss)[0].vppbs[1], (fmapi::Vppb{fmapi::VppbBinding::kBoundLd, 2, 1}));
    EXPECT_FALSE(result_of([&] { return client->virtual_switches({4}); }));
}

TEST_F(Client, PortConfigurationIsReadByDword) {
    always(fmapi::encode(fmapi::PpbConfigResponse{0x12345678}));
    EXPECT_EQ(*result_of([&] { return client->read_port_config(2, 0x100); }), 0x12345678U);
    const auto request = fmapi::decode<fmapi::PpbConfigRequest>(peer.requests[0].payload);
    EXPECT_EQ(request->offset(), 0x100);
    EXPECT_FALSE(request->is_write());
}

TEST_F(Client, PortControlAndAbortAnswerNothing) {
    always({});
    EXPECT_TRUE(result_of([&] { return client->port_control(2, fmapi::PortOperation::kResetPpb); }));
    EXPECT_TRUE(result_of([&] { return client->abort_background(Target::the_switch()); }));
    EXPECT_EQ(peer.requests[1].opcode, Opcode::kRequestAbortBackgroundOperation);
}

TEST_F(Client, CallsTakeTurnsInTheOrderTheyWereMade) {
    int in_flight = 0;
    peer.handle([&](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        EXPECT_EQ(++in_flight, 1);
        for (int i = 0; i < 5; ++i) co_await asio::post(io, asio::use_awaitable);
        --in_flight;
        co_await connection.succeed(request, {});
    });
    int done = 0;
    for (std::uint8_t i = 0; i < 50; ++i)
        asio::co_spawn(
            io,
            [&, i]() -> awaitable<void> {
                const fmapi::UnbindVppbRequest request{.vcs = i};
                EXPECT_TRUE(co_await client->unbind(request));
                EXPECT_EQ(done++, i);
            },
            asio::detached);
    test::run(io, [&]() -> awaitable<void> {
        while (done < 50) co_await asio::post(io, asio::use_awaitable);
    });
    ASSERT_EQ(peer.requests.size(), 50U);
    for (std::uint8_t i = 0; i < 50; ++i) EXPECT_EQ(std::to_integer<int>(peer.requests[i].payload[0]), i);
    EXPECT_EQ(peer.connections, 1);
}

TEST_F(Client, TagsWrapAround) {
    always(fmapi::encode(fmapi::IdentifyResponse{}));
    test::run(io, [&]() -> awaitable<void> {
        for (int i = 0; i < 600; ++i) EXPECT_TRUE(co_await client->identify(Target::the_switch()));
    });
    EXPECT_EQ(peer.connections, 1);
}

TEST(ClientOverUnixSocket, WorksTheSame) {
    const auto path =
        std::filesystem::temp_directory_path() / ("fmapi-" + std::to_string(::getpid()) + ".sock");
    std::filesystem::remove(path);
    {
        asio::io_context io;
        test::Peer peer(io, path.string());
        peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
            const fmapi::IdentifyResponse identity{.serial = 7};
            co_await connection.succeed(request, fmapi::encode(identity));
        });
        const auto client = make_fm_api_client(io.get_executor(), test::patient(peer)).value();
        test::run(io, [&]() -> awaitable<void> {
            const auto answer = co_await client->identify(Target::the_switch());
            EXPECT_TRUE(answer);
            EXPECT_EQ(answer->serial, 7U);
        });
    }
    std::filesystem::remove(path);
}

// --- LD allocations ---

// Takes the message out of a port tunnel, lets `answer` answer it, and wraps that again.
test::Handler behind_a_port(std::function<Message(const Message&, MctpType)> answer) {
    return [answer](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        const auto tunnel = fmapi::decode<fmapi::TunnelRequest>(request.message.payload);
        EXPECT_TRUE(tunnel && tunnel->target == fmapi::TunnelTarget::kPort && tunnel->id == 2);
        const auto inner = fmapi::decode_message(tunnel->command);
        EXPECT_TRUE(inner);
        fmapi::TunnelResponse response;
        response.type = tunnel->type;
        response.response = fmapi::encode_message(answer(*inner, tunnel->type));
        co_await connection.succeed(request, fmapi::encode(response));
    };
}

TEST_F(Client, LdAllocationsAreCollectedFromSeveralAnswers) {
    peer.handle(behind_a_port([](const Message& request, MctpType type) {
        EXPECT_EQ(type, MctpType::kFmApi);
        const auto asked = fmapi::decode<fmapi::GetLdAllocationsRequest>(request.payload);
        fmapi::GetLdAllocationsResponse part;
        part.total_lds = 5;
        part.granularity = fmapi::LdGranularity::k512MiB;
        part.first_ld = asked->first_ld;
        for (unsigned ld = asked->first_ld; ld < 5 && part.allocations.size() < 2; ++ld)
            part.allocations.push_back({.range1 = ld + 10});
        return fmapi::make_response(request, ReturnCode::kSuccess, fmapi::encode(part));
    }));
    const auto all = result_of([&] { return client->ld_allocations(2); });
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->allocations.size(), 5U);
    EXPECT_EQ(all->allocations[4].range1, 14U);
    EXPECT_EQ(all->granularity, fmapi::LdGranularity::k512MiB);
    EXPECT_EQ(peer.requests.size(), 3U);
}

TEST_F(Client, ADeviceThatNeverListsItsLdsIsAProtocolErrorNotALoop) {
    peer.handle(behind_a_port([](const Message& request, MctpType) {
        fmapi::GetLdAllocationsResponse nothing;
        nothing.total_lds = 5;
        return fmapi::make_response(request, ReturnCode::kSuccess, fmapi::encode(nothing));
    }));
    EXPECT_EQ(result_of([&] { return client->ld_allocations(2); }).error().code, ErrorCode::kProtocol);
}

TEST_F(Client, SetLdAllocationsAnswersWhatTheDeviceAllocated) {
    peer.handle(behind_a_port([](const Message& request, MctpType) {
        EXPECT_EQ(request.opcode, Opcode::kSetLdAllocations);
        auto payload = *fmapi::decode<fmapi::SetLdAllocationsPayload>(request.payload);
        payload.allocations[1].range1 = 1;
        return fmapi::make_response(request, ReturnCode::kSuccess, fmapi::encode(payload));
    }));
    const std::vector<fmapi::LdAllocation> wanted{{2, 0}, {2, 0}};
    const auto got = result_of([&] { return client->set_ld_allocations(2, 1, wanted); });
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_THAT(*got, ElementsAre(fmapi::LdAllocation{2, 0}, fmapi::LdAllocation{1, 0}));
}

TEST_F(Client, LdInfoAsksTheDeviceBehindThePort) {
    peer.handle(behind_a_port([](const Message& request, MctpType) {
        return fmapi::make_response(request, ReturnCode::kSuccess,
                                    fmapi::encode(fmapi::GetLdInfoResponse{1 << 30, 4, 0}));
    }));
    EXPECT_EQ(result_of([&] { return client->ld_info(2); })->ld_count, 4);
}

// --- tunnels ---

// Answers what arrives at an LD, through both tunnels.
test::Handler at_an_ld(std::function<Message(const Message&, MctpType)> answer) {
    return behind_a_port([answer](const Message& request, MctpType type) {
        EXPECT_EQ(type, MctpType::kFmApi);
        EXPECT_EQ(request.opcode, Opcode::kTunnelManagementCommand);
        const auto tunnel = fmapi::decode<fmapi::TunnelRequest>(request.payload);
        EXPECT_TRUE(tunnel && tunnel->target == fmapi::TunnelTarget::kLd && tunnel->id == 1);
        const auto inner = fmapi::decode_message(tunnel->command);
        EXPECT_TRUE(inner);
        fmapi::TunnelResponse response;
        response.type = tunnel->type;
        response.response = fmapi::encode_message(answer(*inner, tunnel->type));
        return fmapi::make_response(request, ReturnCode::kSuccess, fmapi::encode(response));
    });
}

TEST_F(Client, AnLdIsReachedThroughTwoTunnels) {
    peer.handle(at_an_ld([](const Message& request, MctpType type) {
        EXPECT_EQ(type, MctpType::kCci);
        EXPECT_EQ(request.opcode, Opcode::kIdentify);
        return fmapi::make_response(request, ReturnCode::kSuccess,
                                    fmapi::encode(fmapi::IdentifyResponse{.serial = 42}));
    }));
    const auto answer = result_of([&] { return client->identify(Target::logical_device(2, 1)); });
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->serial, 42U);
}

TEST_F(Client, SanitizeOfAnLdRunsInTheBackground) {
    peer.handle(at_an_ld([](const Message& request, MctpType) {
        EXPECT_EQ(request.opcode, Opcode::kSanitize);
        return fmapi::make_response(request, ReturnCode::kBackgroundStarted);
    }));
    EXPECT_EQ(*result_of([&] { return client->sanitize(Target::logical_device(2, 1)); }),
              Completion::kInBackground);
}

TEST_F(Client, ARefusalByTheLdNamesTheLdAndTheCommand) {
    peer.handle(at_an_ld(
        [](const Message& request, MctpType) { return fmapi::make_response(request, ReturnCode::kBusy); }));
    const auto answer = result_of([&] { return client->sanitize(Target::logical_device(2, 1)); });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
    EXPECT_THAT(answer.error().message, HasSubstr("Sanitize (4400h) to LD 1 at port 2: Busy (0006h)"));
}

TEST_F(Client, ARefusalByTheSwitchNamesTheTunnel) {
    always({}, ReturnCode::kInvalidInput);
    const auto answer = result_of([&] { return client->identify(Target::device(2)); });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(answer.error().message, HasSubstr("tunnel to device at port 2: Invalid Input (0002h)"));
}

TEST_F(Client, AStaleMessageInTheTunnelIsAProtocolError) {
    // What some switches do with a tunnelled command they do not know: success, and an old answer inside.
    peer.handle(behind_a_port([](const Message& request, MctpType) {
        Message stale = fmapi::make_response(request, ReturnCode::kSuccess);
        stale.opcode = Opcode::kGetLdInfo;
        return stale;
    }));
    const auto answer = result_of([&] { return client->sanitize(Target::device(2)); });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kProtocol);
    EXPECT_THAT(answer.error().message, HasSubstr("not the answer to Sanitize"));
}

TEST_F(Client, ARequestEchoedInTheTunnelIsAProtocolError) {
    peer.handle(behind_a_port([](const Message& request, MctpType) { return request; }));
    EXPECT_EQ(result_of([&] { return client->identify(Target::device(2)); }).error().code,
              ErrorCode::kProtocol);
}

TEST_F(Client, AnEmptyOrHalfTunnelAnswerIsAProtocolError) {
    for (const std::size_t size : {0U, 3U, 4U, 10U}) {
        fmapi::TunnelResponse response;
        response.response = fmapi::encode_message(fmapi::make_request(Opcode::kIdentify, 0));
        auto payload = fmapi::encode(response);
        payload.resize(size);
        always(payload);
        const auto answer = result_of([&] { return client->identify(Target::device(2)); });
        ASSERT_FALSE(answer) << size;
        EXPECT_EQ(answer.error().code, ErrorCode::kProtocol) << answer.error().message;
    }
}

// --- background operations ---

fmapi::BackgroundOperationStatusResponse status(bool running, unsigned percent,
                                                ReturnCode code = ReturnCode::kSuccess) {
    return {fmapi::BackgroundOperationStatusResponse::make_status(running, percent), Opcode::kBindVppb, code,
            0};
}

TEST_F(Client, ABackgroundOperationIsWaitedFor) {
    peer.handle([&](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        const bool running = peer.requests.size() < 4;
        const auto now = status(running, running ? 50 : 100);
        co_await connection.succeed(request, fmapi::encode(now));
    });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    EXPECT_TRUE(result_of(
        [&] { return wait_for_background(*client, Target::the_switch(), Opcode::kBindVppb, deadline); }));
    EXPECT_EQ(peer.requests.size(), 4U);
}

TEST_F(Client, AFailedBackgroundOperationIsAnErrorOfItsReturnCode) {
    always(fmapi::encode(status(false, 100, ReturnCode::kInvalidInput)));
    const auto over = result_of([&] {
        return wait_for_background(*client, Target::the_switch(), Opcode::kBindVppb,
                                   std::chrono::steady_clock::time_point::max());
    });
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(over.error().message, HasSubstr("Bind vPPB (5201h)"));
}

TEST_F(Client, ABackgroundOperationBeyondItsDeadlineIsATimeout) {
    always(fmapi::encode(status(true, 30)));
    const auto over = result_of([&] {
        return wait_for_background(*client, Target::the_switch(), Opcode::kBindVppb,
                                   std::chrono::steady_clock::now());
    });
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(over.error().message, HasSubstr("30 % done"));
}

TEST_F(Client, AStatusOfAnotherOperationIsAProtocolError) {
    always(fmapi::encode(status(true, 30)));
    const auto over = result_of([&] {
        return wait_for_background(*client, Target::the_switch(), Opcode::kUnbindVppb,
                                   std::chrono::steady_clock::now());
    });
    EXPECT_EQ(over.error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace memtide::fm

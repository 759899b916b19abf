// What the client does with switches that are down, slow, broken or just different.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/fmapi/client.h"
#include "tests/fabric-manager/fmapi/peer.h"

namespace memtide::fm {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using fmapi::MctpMessage;
using fmapi::Message;
using fmapi::Opcode;
using fmapi::Payload;
using fmapi::ReturnCode;
using test::PeerConnection;
using testing::HasSubstr;

Payload identity(std::uint64_t serial, std::size_t size = 18) {
    auto payload =
        fmapi::encode(fmapi::IdentifyResponse{1, 2, 3, 4, serial, 12, fmapi::ComponentType::kSwitch});
    payload.resize(size);
    return payload;
}

awaitable<void> identify_as_7(PeerConnection& connection, MctpMessage request) {
    co_await connection.succeed(request, identity(7));
}

class MisbehavingSwitch : public testing::Test {
  protected:
    MisbehavingSwitch() { peer.handle(identify_as_7); }

    std::unique_ptr<FmApiClient> make_client(ClientOptions options) {
        return make_fm_api_client(io.get_executor(), std::move(options)).value();
    }
    // The answer to one Identify.
    Result<fmapi::IdentifyResponse> identify(FmApiClient& client) {
        Result<fmapi::IdentifyResponse> answer = fail(ErrorCode::kInternal, "did not end");
        test::run(io, [&]() -> awaitable<void> { answer = co_await client.identify(Target::the_switch()); });
        return answer;
    }
    // The first request gets `first`, all later ones a proper answer.
    void answer_first_with(test::Handler first) {
        peer.handle([this, first](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
            if (peer.requests.size() == 1)
                co_await first(connection, request);
            else
                co_await identify_as_7(connection, request);
        });
    }
    void expect_works(FmApiClient& client) {
        const auto answer = identify(client);
        ASSERT_TRUE(answer) << answer.error().message;
        EXPECT_EQ(answer->serial, 7U);
    }
    void expect_fails(FmApiClient& client, ErrorCode code, std::string_view why) {
        const auto answer = identify(client);
        ASSERT_FALSE(answer);
        EXPECT_EQ(answer.error().code, code) << answer.error().message;
        EXPECT_THAT(answer.error().message, HasSubstr(why));
        EXPECT_THAT(answer.error().message, HasSubstr("Identify (0001h)"));
    }

    asio::io_context io;
    test::Peer peer{io};
};

TEST_F(MisbehavingSwitch, DownAtStartIsUnavailableAndUsedOnceItIsUp) {
    peer.stop();
    const auto client = make_client(test::patient(peer));
    expect_fails(*client, ErrorCode::kUnavailable, "connect");
    peer.start();
    expect_works(*client);
}

TEST_F(MisbehavingSwitch, ClosedMidCommandIsUnavailableAndReconnectedAfterwards) {
    answer_first_with([](PeerConnection& connection, MctpMessage) -> awaitable<void> {
        connection.close();
        co_return;
    });
    const auto client = make_client(test::patient(peer));
    expect_fails(*client, ErrorCode::kUnavailable, "closed the connection");
    expect_works(*client);
    EXPECT_EQ(peer.connections, 2);
}

TEST_F(MisbehavingSwitch, ClosedWhileIdleIsNotNoticed) {
    const auto client = make_client(test::patient(peer));
    expect_works(*client);
    peer.stop();
    peer.start();
    expect_works(*client);
    EXPECT_EQ(peer.connections, 2);
}

TEST_F(MisbehavingSwitch, NoAnswerAtAllIsATimeoutAndTheSecondOneDropsTheConnection) {
    peer.handle([](PeerConnection&, MctpMessage) -> awaitable<void> { co_return; });
    const auto client = make_client(test::impatient(peer));
    expect_fails(*client, ErrorCode::kTimeout, "no answer in time");
    expect_fails(*client, ErrorCode::kTimeout, "no answer in time");
    EXPECT_EQ(peer.connections, 1);
    expect_fails(*client, ErrorCode::kTimeout, "no answer in time");
    EXPECT_EQ(peer.connections, 2);
}

TEST_F(MisbehavingSwitch, HalfAnAnswerIsATimeout) {
    peer.handle([](PeerConnection& connection, MctpMessage) -> awaitable<void> {
        co_await connection.write(std::vector<std::byte>(1, std::byte{1}));
    });
    const auto client = make_client(test::impatient(peer));
    expect_fails(*client, ErrorCode::kTimeout, "no answer in time");
}

TEST_F(MisbehavingSwitch, AnAnswerThatDripsInIsPutTogether) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        const MctpMessage answer{fmapi::reply_route(request.route), request.type,
                                 fmapi::make_response(request.message, ReturnCode::kSuccess, identity(7))};
        for (const std::byte byte : fmapi::to_packets(answer)) {
            std::vector<std::byte> one(1, byte);
            co_await connection.write(std::move(one));
        }
    });
    const auto client = make_client(test::patient(peer));
    expect_works(*client);
}

TEST_F(MisbehavingSwitch, GarbageIsAProtocolErrorAndTheConnectionIsReplaced) {
    answer_first_with([](PeerConnection& connection, MctpMessage) -> awaitable<void> {
        co_await connection.write(std::vector<std::byte>(fmapi::kPacketSize, std::byte{0xff}));
    });
    const auto client = make_client(test::patient(peer));
    expect_fails(*client, ErrorCode::kProtocol, "MCTP stream");
    expect_works(*client);
    EXPECT_EQ(peer.connections, 2);
}

TEST_F(MisbehavingSwitch, AnAnswerWithAnotherTagIsIgnored) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        MctpMessage other = request;
        ++other.message.tag;
        co_await connection.succeed(other, identity(666));
        co_await identify_as_7(connection, request);
    });
    const auto client = make_client(test::patient(peer));
    expect_works(*client);
}

TEST_F(MisbehavingSwitch, OnlyAnAnswerWithAnotherTagIsATimeout) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        ++request.message.tag;
        co_await connection.succeed(request, identity(666));
    });
    const auto client = make_client(test::impatient(peer));
    expect_fails(*client, ErrorCode::kTimeout, "no answer in time");
}

TEST_F(MisbehavingSwitch, AnAnswerToAnotherCommandIsAProtocolErrorAndTheConnectionIsReplaced) {
    answer_first_with([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        request.message.opcode = Opcode::kBindVppb;
        co_await connection.succeed(request, identity(666));
    });
    const auto client = make_client(test::patient(peer));
    expect_fails(*client, ErrorCode::kProtocol, "is to Bind vPPB (5201h)");
    expect_works(*client);
    EXPECT_EQ(peer.connections, 2);
}

TEST_F(MisbehavingSwitch, OpcodeZeroInAnAnswerIsMatchedByItsTag) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        request.message.opcode = Opcode{};
        co_await connection.succeed(request, identity(7));
    });
    const auto client = make_client(test::patient(peer));
    expect_works(*client);
}

TEST_F(MisbehavingSwitch, AShortPayloadIsAProtocolErrorThatNamesTheFieldAndKeepsTheConnection) {
    answer_first_with([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        co_await connection.succeed(request, identity(7, 15));
    });
    const auto client = make_client(test::patient(peer));
    expect_fails(*client, ErrorCode::kProtocol, "\"serial\" needs bytes 8 to 15");
    expect_works(*client);
    EXPECT_EQ(peer.connections, 1);
}

TEST_F(MisbehavingSwitch, NotificationsBetweenRequestAndAnswerAreIgnored) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        co_await connection.notify();
        co_await identify_as_7(connection, request);
        co_await connection.notify();
    });
    const auto client = make_client(test::patient(peer));
    expect_works(*client);
    expect_works(*client);
    EXPECT_EQ(peer.connections, 1);
}

TEST_F(MisbehavingSwitch, NotificationsWithoutEndDoNotOutlastTheDeadline) {
    peer.handle([](PeerConnection& connection, MctpMessage) -> awaitable<void> {
        while (connection.socket_.is_open()) {
            co_await connection.notify();
            // Lets the client run, and ends when it has left.
            co_await asio::post(connection.socket_.get_executor(), asio::use_awaitable);
        }
    });
    const auto client = make_client(test::impatient(peer));
    expect_fails(*client, ErrorCode::kTimeout, "no answer in time");
    peer.stop();
}

TEST_F(MisbehavingSwitch, IdentifyMayHaveSeventeenBytes) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        co_await connection.succeed(request, identity(7, 17));
    });
    const auto client = make_client(test::patient(peer));
    const auto answer = identify(*client);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->serial, 7U);
    EXPECT_EQ(answer->component_type, fmapi::ComponentType::kUnknown);
}

TEST_F(MisbehavingSwitch, IdentifySwitchMayHaveNinetyThreeBytes) {
    for (const std::size_t size : {73U, 93U}) {
        peer.handle([size](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
            fmapi::IdentifySwitchDeviceResponse switch_device;
            switch_device.vcss = 2;
            switch_device.hdm_decoders = 4;
            auto payload = fmapi::encode(switch_device);
            payload.resize(size);
            co_await connection.succeed(request, std::move(payload));
        });
        const auto client = make_client(test::patient(peer));
        test::run(io, [&]() -> awaitable<void> {
            const auto answer = co_await client->identify_switch();
            EXPECT_TRUE(answer);
            EXPECT_EQ(answer->vcss, 2);
            EXPECT_EQ(answer->hdm_decoders, 4);
        });
    }
}

TEST_F(MisbehavingSwitch, ReturnCodesBecomeErrorsThatNameThem) {
    const std::vector<std::pair<ReturnCode, ErrorCode>> cases = {
        {ReturnCode::kBusy, ErrorCode::kConflict},
        {ReturnCode::kRetryRequired, ErrorCode::kConflict},
        {ReturnCode::kInvalidInput, ErrorCode::kInvalidArgument},
        {ReturnCode::kUnsupported, ErrorCode::kInvalidArgument},
        {ReturnCode::kInternalError, ErrorCode::kIo},
        {ReturnCode::kResourcesExhausted, ErrorCode::kExhausted},
        {static_cast<ReturnCode>(0x7777), ErrorCode::kProtocol}};
    const auto client = make_client(test::patient(peer));
    for (const auto& [code, error] : cases) {
        peer.handle([code = code](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
            Message response = fmapi::make_response(request.message, code);
            co_await connection.answer(request, std::move(response));
        });
        expect_fails(*client, error, fmapi::to_string(code));
    }
    EXPECT_EQ(peer.connections, 1);
}

TEST_F(MisbehavingSwitch, ABackgroundStartWhereNoneMakesSenseIsAProtocolError) {
    peer.handle([](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        Message response = fmapi::make_response(request.message, ReturnCode::kBackgroundStarted);
        co_await connection.answer(request, std::move(response));
    });
    const auto client = make_client(test::patient(peer));
    expect_fails(*client, ErrorCode::kProtocol, "background");
}

// --- cancellation and destruction ---

// A call that runs beside the test and can be cancelled.
struct SideCall {
    asio::cancellation_signal signal;
    std::optional<Result<fmapi::IdentifyResponse>> answer;
    std::exception_ptr thrown;
    bool ended = false;

    void start(asio::io_context& io, FmApiClient& client) {
        asio::co_spawn(
            io,
            [this, &client]() -> awaitable<void> { answer = co_await client.identify(Target::the_switch()); },
            asio::bind_cancellation_slot(signal.slot(), [this](std::exception_ptr error) {
                thrown = error;
                ended = true;
            }));
    }
};

// Lets the io_context run until `condition` holds.
void run_until(asio::io_context& io, std::function<bool()> condition) {
    test::run(io, [&]() -> awaitable<void> {
        while (!condition()) co_await asio::post(io, asio::use_awaitable);
    });
}

TEST_F(MisbehavingSwitch, ACancelledCallEndsAndItsLateAnswerIsNotTakenForTheNextOne) {
    std::optional<MctpMessage> unanswered;
    peer.handle([&](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        if (!unanswered) {
            unanswered = request;
            co_return;
        }
        co_await connection.succeed(*unanswered, identity(666));
        co_await identify_as_7(connection, request);
    });
    const auto client = make_client(test::patient(peer));
    SideCall call;
    call.start(io, *client);
    run_until(io, [&] { return unanswered.has_value(); });
    call.signal.emit(asio::cancellation_type::terminal);
    run_until(io, [&] { return call.ended; });
    ASSERT_TRUE(call.answer);
    EXPECT_EQ(call.answer->error().code, ErrorCode::kCancelled);
    EXPECT_FALSE(call.thrown);

    expect_works(*client);
    EXPECT_EQ(peer.connections, 1);
}

TEST_F(MisbehavingSwitch, ACallCancelledInTheQueueLeavesTheOthersAlone) {
    std::vector<MctpMessage> held;
    bool release = false;
    peer.handle([&](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
        while (!release) co_await asio::post(io, asio::use_awaitable);
        co_await identify_as_7(connection, request);
    });
    const auto client = make_client(test::patient(peer));
    SideCall first, second, third;
    first.start(io, *client);
    second.start(io, *client);
    third.start(io, *client);
    run_until(io, [&] { return peer.requests.size() == 1; });
    second.signal.emit(asio::cancellation_type::terminal);
    run_until(io, [&] { return second.ended; });
    EXPECT_FALSE(first.ended);
    release = true;
    run_until(io, [&] { return first.ended && third.ended; });
    EXPECT_TRUE(first.answer->has_value());
    EXPECT_EQ(second.answer->error().code, ErrorCode::kCancelled);
    EXPECT_TRUE(third.answer->has_value());
    EXPECT_EQ(peer.requests.size(), 2U);
}

TEST_F(MisbehavingSwitch, CloseEndsCallsInFlightAndInTheQueueAndTheNextCallReconnects) {
    peer.handle([](PeerConnection&, MctpMessage) -> awaitable<void> { co_return; });
    const auto client = make_client(test::patient(peer));
    SideCall first, second;
    first.start(io, *client);
    second.start(io, *client);
    run_until(io, [&] { return peer.requests.size() == 1; });
    client->close();
    run_until(io, [&] { return first.ended && second.ended; });
    EXPECT_EQ(first.answer->error().code, ErrorCode::kCancelled);
    EXPECT_EQ(second.answer->error().code, ErrorCode::kCancelled);
    peer.handle(identify_as_7);
    expect_works(*client);
}

TEST_F(MisbehavingSwitch, DestroyingTheClientEndsItsCalls) {
    peer.handle([](PeerConnection&, MctpMessage) -> awaitable<void> { co_return; });
    auto client = make_client(test::patient(peer));
    SideCall first, second;
    first.start(io, *client);
    second.start(io, *client);
    run_until(io, [&] { return peer.requests.size() == 1; });
    client.reset();
    run_until(io, [&] { return first.ended && second.ended; });
    EXPECT_EQ(first.answer->error().code, ErrorCode::kCancelled);
    EXPECT_EQ(second.answer->error().code, ErrorCode::kCancelled);
}

TEST_F(MisbehavingSwitch, AnIoContextThatGoesAwayTakesItsCallsWithIt) {
    asio::io_context short_lived;
    auto client = make_fm_api_client(short_lived.get_executor(), test::patient(peer)).value();
    peer.stop();
    for (int i = 0; i < 3; ++i)
        asio::co_spawn(
            short_lived, [&]() -> awaitable<void> { (void)co_await client->identify(Target::the_switch()); },
            asio::detached);
    short_lived.poll_one();
}

}  // namespace
}  // namespace memtide::fm

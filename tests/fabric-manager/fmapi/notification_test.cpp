// What a switch says unasked.
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "fabric-manager/fmapi/client.h"
#include "tests/fabric-manager/fmapi/peer.h"

namespace memtide::fm {
namespace {

using boost::asio::awaitable;
using fmapi::MctpMessage;
using test::PeerConnection;

class Notifications : public testing::Test {
  protected:
    Notifications() : client_(make_fm_api_client(io_.get_executor(), test::patient(peer_)).value()) {
        client_->on_notification([this] { ++notified_; });
        peer_.handle([this](PeerConnection& connection, MctpMessage request) -> awaitable<void> {
            connection_ = &connection;
            for (int i = 0; i < before_answer_; ++i) co_await connection.notify();
            auto payload = fmapi::encode(fmapi::IdentifyResponse{1, 2, 3, 4, 7, 12});
            co_await connection.succeed(request, std::move(payload));
            for (int i = 0; i < behind_answer_; ++i) co_await connection.notify();
        });
    }
    awaitable<void> expect_answer() {
        const auto answer = co_await client_->identify(Target::the_switch());
        EXPECT_TRUE(answer && answer->serial == 7) << (answer ? "other" : answer.error().message);
    }
    awaitable<void> until_notified(int times) {
        boost::asio::steady_timer timer(io_);
        while (notified_ < times) {
            timer.expires_after(std::chrono::milliseconds(1));
            co_await timer.async_wait(boost::asio::use_awaitable);
        }
    }

    boost::asio::io_context io_;
    test::Peer peer_{io_};
    std::unique_ptr<FmApiClient> client_;
    PeerConnection* connection_ = nullptr;
    int before_answer_ = 0;
    int behind_answer_ = 0;
    int notified_ = 0;
};

TEST_F(Notifications, InBetweenAreToldAndConfuseNoCommand) {
    before_answer_ = 3;
    test::run(io_, [this]() -> awaitable<void> {
        co_await expect_answer();
        co_await expect_answer();
    });
    EXPECT_EQ(notified_, 6);
    EXPECT_EQ(peer_.connections, 1);
}

TEST_F(Notifications, WhileNothingIsAskedAreTold) {
    test::run(io_, [this]() -> awaitable<void> {
        co_await expect_answer();
        for (int i = 1; i <= 3; ++i) {
            co_await connection_->notify();
            co_await until_notified(i);
        }
        co_await expect_answer();
    });
    EXPECT_EQ(peer_.connections, 1);
}

TEST_F(Notifications, RightBehindAnAnswerAreTold) {
    behind_answer_ = 2;
    test::run(io_, [this]() -> awaitable<void> {
        co_await expect_answer();
        co_await until_notified(2);
    });
}

TEST_F(Notifications, EndOfAnIdleConnectionIsTold) {
    test::run(io_, [this]() -> awaitable<void> {
        co_await expect_answer();
        connection_->close();
        co_await until_notified(1);
        co_await expect_answer();
    });
    EXPECT_EQ(peer_.connections, 2);
}

TEST_F(Notifications, AreStillToldAfterACommandThatWasNotAnswered) {
    client_ = make_fm_api_client(io_.get_executor(), test::impatient(peer_)).value();
    client_->on_notification([this] { ++notified_; });
    peer_.handle([this](PeerConnection& connection, MctpMessage) -> awaitable<void> {
        connection_ = &connection;
        co_return;
    });
    test::run(io_, [this]() -> awaitable<void> {
        const auto answer = co_await client_->identify(Target::the_switch());
        EXPECT_FALSE(answer);
        co_await connection_->notify();
        co_await until_notified(1);
    });
}

TEST_F(Notifications, BytesThatMakeNoSenseEndTheConnection) {
    test::run(io_, [this]() -> awaitable<void> {
        co_await expect_answer();
        std::vector<std::byte> nonsense(fmapi::kPacketSize, std::byte{0xff});
        co_await connection_->write(std::move(nonsense));
        // Seen while nothing is asked, or in place of an answer.
        const auto maybe = co_await client_->identify(Target::the_switch());
        EXPECT_TRUE(maybe || maybe.error().code == ErrorCode::kProtocol);
        co_await expect_answer();
    });
    EXPECT_EQ(notified_, 0);
    EXPECT_EQ(peer_.connections, 2);
}

}  // namespace
}  // namespace memtide::fm

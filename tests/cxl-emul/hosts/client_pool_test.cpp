#include "cxl-emul/hosts/client_pool.h"

#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMost = 256;

class ClientPoolTest : public testing::Test {
  protected:
    // Takes a lease and keeps it.
    asio::awaitable<void> take() { return take_as(identity_); }
    asio::awaitable<void> take_as(ClientPool::Identity identity) {
        ClientPool::Lease lease = co_await pool_.take(std::move(identity));
        leases_.push_back(std::move(lease));
    }
    // The connection that a host gets, given back at once.
    const void* connection_of(const ClientPool::Identity& identity) {
        asio::co_spawn(context_, take_as(identity), asio::detached);
        run();
        const void* const client = leases_.back().operator->();
        leases_.pop_back();
        return client;
    }
    void take_in_background() {
        asio::co_spawn(context_, take(), asio::detached);
        run();
    }
    void run() {
        context_.restart();
        context_.poll();
    }

    asio::io_context context_{1};
    const ClientPool::Identity identity_ = http::Credentials::none();
    ClientPool pool_{context_.get_executor(), "unix:/nowhere"};
    std::list<ClientPool::Lease> leases_;
};

TEST_F(ClientPoolTest, OneTooManyWaitsForTheFirstThatIsGivenBack) {
    for (std::size_t i = 0; i < kMost + 1; ++i) take_in_background();
    EXPECT_EQ(leases_.size(), kMost);
    leases_.pop_front();
    run();
    EXPECT_EQ(leases_.size(), kMost);
}

TEST_F(ClientPoolTest, SeveralThatAreGivenBackAtOnceServeAsMany) {
    for (std::size_t i = 0; i < kMost + 5; ++i) take_in_background();
    for (int i = 0; i < 3; ++i) leases_.pop_front();
    run();
    EXPECT_EQ(leases_.size(), kMost);
    for (int i = 0; i < 10; ++i) leases_.pop_front();
    run();
    EXPECT_EQ(leases_.size(), kMost - 10 + 2);
}

TEST_F(ClientPoolTest, AWaiterThatIsStoppedLeavesItsPlaceToTheNext) {
    for (std::size_t i = 0; i < kMost; ++i) take_in_background();
    asio::cancellation_signal stop;
    asio::co_spawn(context_, take(),
                   asio::bind_cancellation_slot(stop.slot(), [](const std::exception_ptr&) {}));
    run();
    take_in_background();
    stop.emit(asio::cancellation_type::all);
    run();
    EXPECT_EQ(leases_.size(), kMost);
    leases_.pop_front();
    run();
    EXPECT_EQ(leases_.size(), kMost);
}

TEST_F(ClientPoolTest, OnlyHostsThatShowTheSameShareAConnection) {
    const ClientPool::Identity another = http::Credentials::none();
    const void* const first = connection_of(identity_);
    EXPECT_EQ(connection_of(identity_), first);
    EXPECT_NE(connection_of(another), first);
    EXPECT_EQ(connection_of(identity_), first);
    EXPECT_EQ(pool_.idle_count(), 2U);
}

TEST_F(ClientPoolTest, OfTooManyIdleOnesTheOneThatWasUsedFirstIsClosed) {
    const void* const first = connection_of(identity_);
    std::vector<ClientPool::Identity> others;
    for (std::size_t i = 0; i + 1 < ClientPool::kMostIdle; ++i) {
        others.push_back(http::Credentials::none());
        (void)connection_of(others.back());
    }
    EXPECT_EQ(connection_of(identity_), first);
    for (int i = 0; i < 3; ++i) {
        others.push_back(http::Credentials::none());
        (void)connection_of(others.back());
    }
    EXPECT_EQ(pool_.idle_count(), ClientPool::kMostIdle);
    EXPECT_EQ(connection_of(identity_), first) << "was used later than others";
}

}  // namespace
}  // namespace memtide::emul

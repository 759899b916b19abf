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
    asio::awaitable<void> take() { leases_.push_back(co_await pool_.take()); }
    void take_in_background() {
        asio::co_spawn(context_, take(), asio::detached);
        run();
    }
    void run() {
        context_.restart();
        context_.poll();
    }

    asio::io_context context_{1};
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

}  // namespace
}  // namespace memtide::emul

#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "fabric-manager/model/time.h"

// Waiting among coroutines of one executor whose handlers run one at a time. Nothing here is thread safe.
namespace memtide::fm {

using SteadyTime = std::chrono::steady_clock::time_point;

inline double since_ms(SteadyTime began) { return to_ms(std::chrono::steady_clock::now() - began); }

// Wakes every coroutine that waits; like a condition variable, waiters look again in a loop. Coroutines may
// outlive it: those that wait then end their wait at their deadline.
class Signal {
  public:
    explicit Signal(boost::asio::any_io_executor executor);
    void notify_all();
    // Until notify_all(), the deadline, or the cancellation of the calling coroutine.
    boost::asio::awaitable<void> wait_until(SteadyTime deadline);
    [[nodiscard]] std::size_t waiting() const { return timers_->size(); }

  private:
    using Timers = std::list<boost::asio::steady_timer*>;
    boost::asio::any_io_executor executor_;
    std::shared_ptr<Timers> timers_;
};

// First come, first served.
class AsyncMutex {
    struct Waiter {
        boost::asio::steady_timer timer;
        bool granted = false;
    };
    struct State {
        boost::asio::any_io_executor executor;
        bool locked = false;
        std::deque<std::shared_ptr<Waiter>> waiters;
    };

  public:
    explicit AsyncMutex(boost::asio::any_io_executor executor);

    // Holds the mutex while it lives.
    class Lock {
      public:
        Lock() = default;
        explicit Lock(std::shared_ptr<State> state) : state_(std::move(state)) {}
        Lock(Lock&& other) noexcept = default;
        Lock& operator=(Lock&& other) noexcept {
            std::swap(state_, other.state_);
            return *this;
        }
        ~Lock() { unlock(); }
        void unlock();

      private:
        std::shared_ptr<State> state_;
    };

    boost::asio::awaitable<Lock> lock();

  private:
    static void hand_on(State& state);
    std::shared_ptr<State> state_;
};

// Runs `body` to its end even when the calling coroutine is cancelled: what has been journaled must be shown.
template <typename T>
boost::asio::awaitable<T> shielded(boost::asio::any_io_executor executor, boost::asio::awaitable<T> body) {
    auto start = [executor](auto handler, boost::asio::awaitable<T> work) {
        // A shared handler is no cancellable one, which is the point.
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        boost::asio::co_spawn(executor, std::move(work), [shared](std::exception_ptr failure, T value) {
            if (failure) std::rethrow_exception(failure);
            (*shared)(std::move(value));
        });
    };
    auto token = boost::asio::use_awaitable;
    co_return co_await boost::asio::async_initiate<decltype(boost::asio::use_awaitable), void(T)>(
        start, token, std::move(body));
}

}  // namespace memtide::fm

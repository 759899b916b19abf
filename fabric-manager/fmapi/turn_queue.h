#pragma once

#include <deque>
#include <memory>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace memtide::fm {

// Lets coroutines of one executor take turns, first come first served. Not thread safe.
class TurnQueue {
  public:
    // Holds the turn until it is destroyed; false when the wait was cancelled.
    class Turn {
      public:
        Turn() = default;
        explicit Turn(TurnQueue& queue) : queue_(&queue) {}
        Turn(Turn&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
        Turn& operator=(Turn&&) = delete;
        ~Turn() {
            if (queue_ != nullptr) queue_->pass_on();
        }
        explicit operator bool() const { return queue_ != nullptr; }

      private:
        TurnQueue* queue_ = nullptr;
    };

    explicit TurnQueue(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
    TurnQueue(const TurnQueue&) = delete;
    TurnQueue& operator=(const TurnQueue&) = delete;

    boost::asio::awaitable<Turn> take();

  private:
    struct Waiter;
    class Place;  // in the queue; gives itself up when its coroutine ends early

    void pass_on();

    boost::asio::any_io_executor executor_;
    bool taken_ = false;
    std::deque<std::shared_ptr<Waiter>> waiters_;
};

}  // namespace memtide::fm

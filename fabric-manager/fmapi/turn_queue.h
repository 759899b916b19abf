#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace memtide::fm {

// Lets coroutines of one executor take turns, one at a time or a few, first come first served. Not thread
// safe.
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

    // So many have a turn at a time; at least one.
    explicit TurnQueue(boost::asio::any_io_executor executor, std::size_t turns = 1)
        : executor_(std::move(executor)), turns_(turns == 0 ? 1 : turns), left_(turns_) {}
    TurnQueue(const TurnQueue&) = delete;
    TurnQueue& operator=(const TurnQueue&) = delete;

    boost::asio::awaitable<Turn> take();
    [[nodiscard]] std::size_t turns() const { return turns_; }

  private:
    struct Waiter;
    class Place;  // in the queue; gives itself up when its coroutine ends early

    void pass_on();

    boost::asio::any_io_executor executor_;
    std::size_t turns_;
    std::size_t left_;
    std::deque<std::shared_ptr<Waiter>> waiters_;
};

}  // namespace memtide::fm

#include "fabric-manager/fmapi/turn_queue.h"

#include <algorithm>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace memtide::fm {
namespace asio = boost::asio;

struct TurnQueue::Waiter {
    explicit Waiter(const asio::any_io_executor& executor)
        : timer(executor, asio::steady_timer::time_point::max()) {}
    asio::steady_timer timer;  // cancelled to wake the waiter
    bool granted = false;
};

class TurnQueue::Place {
  public:
    explicit Place(TurnQueue& queue) : queue_(queue), waiter_(std::make_shared<Waiter>(queue.executor_)) {
        queue_.waiters_.push_back(waiter_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
        if (waiter_->granted)
            queue_.pass_on();  // the turn came, and nobody is left to use it
        else
            std::erase(queue_.waiters_, waiter_);
    }
    asio::steady_timer& timer() { return waiter_->timer; }
    Turn use() { return std::exchange(waiter_->granted, false) ? Turn(queue_) : Turn(); }

  private:
    TurnQueue& queue_;
    std::shared_ptr<Waiter> waiter_;
};

asio::awaitable<TurnQueue::Turn> TurnQueue::take() {
    if (left_ > 0) {
        --left_;
        co_return Turn(*this);
    }
    Place place(*this);
    co_await place.timer().async_wait(asio::as_tuple(asio::use_awaitable));
    co_return place.use();
}

void TurnQueue::pass_on() {
    if (waiters_.empty()) {
        ++left_;
        return;
    }
    const auto next = waiters_.front();
    waiters_.pop_front();
    next->granted = true;
    next->timer.cancel();
}

}  // namespace memtide::fm

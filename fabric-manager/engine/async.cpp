#include "fabric-manager/engine/async.h"

#include "common/base/no_throw.h"

namespace memtide::fm {

Signal::Signal(boost::asio::any_io_executor executor)
    : executor_(std::move(executor)), timers_(std::make_shared<Timers>()) {}

void Signal::notify_all() {
    for (boost::asio::steady_timer* timer : *timers_) timer->cancel();
}

boost::asio::awaitable<void> Signal::wait_until(SteadyTime deadline) {
    // Leaves the list also when the coroutine is destroyed while it waits.
    struct Entry {
        std::shared_ptr<Timers> timers;
        Timers::iterator place;
        ~Entry() { timers->erase(place); }
    };
    boost::asio::steady_timer timer(executor_, deadline);
    const Entry entry{timers_, timers_->insert(timers_->end(), &timer)};
    co_await timer.async_wait(kNoThrow);
}

AsyncMutex::AsyncMutex(boost::asio::any_io_executor executor) : state_(std::make_shared<State>()) {
    state_->executor = std::move(executor);
}

boost::asio::awaitable<AsyncMutex::Lock> AsyncMutex::lock() {
    const std::shared_ptr<State> state = state_;
    if (!state->locked) {
        state->locked = true;
        co_return Lock(state);
    }
    // A waiter that is destroyed after the mutex was handed to it has to hand it on.
    struct Turn {
        std::shared_ptr<State> state;
        std::shared_ptr<Waiter> waiter;
        bool taken = false;
        ~Turn() {
            if (taken) return;
            if (waiter->granted)
                hand_on(*state);
            else
                std::erase(state->waiters, waiter);
        }
    };
    auto waiter = std::make_shared<Waiter>(boost::asio::steady_timer(state->executor, SteadyTime::max()));
    Turn turn{state, waiter};
    state->waiters.push_back(waiter);
    while (!waiter->granted) co_await waiter->timer.async_wait(kNoThrow);
    turn.taken = true;
    co_return Lock(state);
}

void AsyncMutex::hand_on(State& state) {
    if (state.waiters.empty()) {
        state.locked = false;
        return;
    }
    const std::shared_ptr<Waiter> next = std::move(state.waiters.front());
    state.waiters.pop_front();
    next->granted = true;
    next->timer.cancel();
}

void AsyncMutex::Lock::unlock() {
    if (const std::shared_ptr<State> state = std::exchange(state_, nullptr)) hand_on(*state);
}

}  // namespace memtide::fm

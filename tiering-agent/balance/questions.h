#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <utility>

namespace memtide::agent {

// What other threads ask of the one that has the answers: it answers while it would sleep, and between two
// pieces of its work, so that nothing it works on needs a lock. Thread safe.
class Questions {
  public:
    using Question = std::function<void()>;
    static constexpr std::size_t kMostWaiting = 256;

    // The question is called on the thread that answers, as soon as that has time. False when kMostWaiting
    // wait already: it is never called then.
    [[nodiscard]] bool ask(Question question);
    // Ends a sleep that may be woken, or the next such when there is none.
    void wake();

    // For the thread that answers: what waits now.
    void answer_waiting();
    enum class Sleep { kLight, kDeep };  // may be woken; or not
    // For the thread that answers: sleeps until the time is over, it is woken or to stop; answers meanwhile.
    void answer_for(std::chrono::milliseconds time, const std::stop_token& stop, Sleep sleep);

    // For the thread that answers: the processor time that answers took since the last call.
    std::chrono::microseconds take_cost() { return std::exchange(cost_, std::chrono::microseconds(0)); }

  private:
    void answer_all(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable_any asked_;
    std::deque<Question> waiting_;
    bool wakes_ = false;
    std::chrono::microseconds cost_{0};  // of the thread that answers, without the mutex
};

}  // namespace memtide::agent

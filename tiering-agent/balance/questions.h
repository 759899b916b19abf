#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>

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

  private:
    void answer_all(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;
    std::condition_variable_any asked_;
    std::deque<Question> waiting_;
    bool wakes_ = false;
};

}  // namespace memtide::agent

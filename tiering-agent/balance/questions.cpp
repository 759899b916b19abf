#include "tiering-agent/balance/questions.h"

#include <utility>

#include "tiering-agent/observe/processor_time.h"

namespace memtide::agent {

bool Questions::ask(Question question) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back(std::move(question));
    asked_.notify_all();
    return true;
}

void Questions::wake() {
    const std::lock_guard lock(mutex_);
    wakes_ = true;
    asked_.notify_all();
}

void Questions::answer_all(std::unique_lock<std::mutex>& lock) {
    while (!waiting_.empty()) {
        const Question question = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        const auto before = processor_time();
        question();
        cost_ += processor_time() - before;
        lock.lock();
    }
}

void Questions::answer_waiting() {
    std::unique_lock lock(mutex_);
    answer_all(lock);
}

void Questions::answer_for(std::chrono::milliseconds time, const std::stop_token& stop, Sleep sleep) {
    const auto end = std::chrono::steady_clock::now() + time;
    std::unique_lock lock(mutex_);
    const auto is_woken = [&] { return wakes_ && sleep == Sleep::kLight; };
    answer_all(lock);
    while (!stop.stop_requested() && !is_woken() && std::chrono::steady_clock::now() < end) {
        asked_.wait_until(lock, stop, end, [&] { return is_woken() || !waiting_.empty(); });
        answer_all(lock);
    }
    if (sleep == Sleep::kLight) wakes_ = false;
}

}  // namespace memtide::agent

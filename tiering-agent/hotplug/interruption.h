#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include <sys/types.h>

namespace memtide::agent {

// Ends a system call of the hot-plug thread that may block for ever: offlining a memory block is tried by the
// kernel until it succeeds or a signal comes. The signal (SIGUSR2) goes to that one thread, every 20 ms from
// the given moment on until disarmed, since one alone could come just before the call.
class Interruption {
  public:
    using Clock = std::chrono::steady_clock;

    Interruption() = default;
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    // While it lives, blocking calls of this thread are ended from `deadline` on, or by request().
    class Armed {
      public:
        Armed(Interruption& owner, Clock::time_point deadline);
        ~Armed();
        Armed(const Armed&) = delete;
        Armed& operator=(const Armed&) = delete;

      private:
        Interruption& owner_;
    };

    // Ends the current and every later armed call, until reset(). Any thread.
    void request();
    void reset();
    [[nodiscard]] bool requested() const { return requested_.load(); }

  private:
    void arm(Clock::time_point deadline);
    void disarm();
    void set_timer(std::chrono::nanoseconds delay);

    std::mutex mutex_;
    std::atomic<bool> requested_{false};
    bool armed_ = false;
    pid_t thread_ = 0;  // whose timer it is
    timer_t timer_{};
};

}  // namespace memtide::agent

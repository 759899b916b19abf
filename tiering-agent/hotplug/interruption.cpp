#include "tiering-agent/hotplug/interruption.h"

#include <csignal>
#include <ctime>

#include <unistd.h>

namespace memtide::agent {
namespace {

constexpr int kSignal = SIGUSR2;
constexpr std::chrono::milliseconds kRepeat{20};

timespec to_timespec(std::chrono::nanoseconds duration) {
    return {.tv_sec = static_cast<time_t>(duration.count() / 1'000'000'000),
            .tv_nsec = static_cast<long>(duration.count() % 1'000'000'000)};
}

// The handler does nothing: that there is one, and no SA_RESTART, is what makes the call return EINTR.
void install_handler() {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    sigemptyset(&action.sa_mask);
    sigaction(kSignal, &action, nullptr);
}

}  // namespace

Interruption::~Interruption() {
    if (thread_ != 0) timer_delete(timer_);
}

Interruption::Armed::Armed(Interruption& owner, Clock::time_point deadline) : owner_(owner) {
    owner_.arm(deadline);
}
Interruption::Armed::~Armed() { owner_.disarm(); }

void Interruption::arm(Clock::time_point deadline) {
    const std::lock_guard lock(mutex_);
    if (thread_ != gettid()) {
        if (thread_ != 0) timer_delete(timer_);
        install_handler();
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = kSignal;
        event._sigev_un._tid = gettid();
        thread_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0 ? gettid() : 0;
    }
    armed_ = true;
    const auto left = requested_ ? Clock::duration::zero() : deadline - Clock::now();
    set_timer(left > Clock::duration::zero() ? left : Clock::duration{1});
}

void Interruption::disarm() {
    const std::lock_guard lock(mutex_);
    armed_ = false;
    if (thread_ == 0) return;
    const itimerspec off{};
    timer_settime(timer_, 0, &off, nullptr);
}

void Interruption::set_timer(std::chrono::nanoseconds delay) {
    if (thread_ == 0) return;
    const itimerspec when{.it_interval = to_timespec(kRepeat), .it_value = to_timespec(delay)};
    timer_settime(timer_, 0, &when, nullptr);
}

void Interruption::request() {
    const std::lock_guard lock(mutex_);
    requested_ = true;
    if (armed_) set_timer(std::chrono::nanoseconds{1});
}

void Interruption::reset() { requested_ = false; }

}  // namespace memtide::agent

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "common/base/error.h"
#include "tiering-agent/hotplug/reconciler.h"

namespace memtide::agent {

struct ControllerTiming {
    RetryTimes retry;
    std::chrono::milliseconds poll{10'000};       // looks at least so often: kernel events are a hint only
    std::chrono::milliseconds blind_poll{1'000};  // the same without kernel events
};

// Runs a Reconciler on a thread of its own, since the kernel's files block. It looks when the desired state
// changes, when the kernel announces a change of CXL, DAX or memory devices, and now and then. Public
// functions are thread safe.
class Controller {
  public:
    // `on_observed` is called on that thread, whenever what is observed differs from the last time.
    Controller(Host& host, Interruption& interruption, ControllerTiming timing,
               std::function<void(const Observed&)> on_observed);
    ~Controller();
    Controller(const Controller&) = delete;
    Controller& operator=(const Controller&) = delete;

    void start();
    // Until the first call, nothing is changed on the host. Ends a drain that the new state does not want.
    void set_desired(Desired desired);
    // Returns when the thread has ended; an action that is under way is interrupted or, where that is short,
    // ended.
    void stop();

  private:
    void run();
    void run_passes();
    void report(const Observed& observed);
    void wait(std::optional<Reconciler::Clock::time_point> until);
    void wake() const;

    Host& host_;
    Interruption& interruption_;
    ControllerTiming timing_;
    std::function<void(const Observed&)> on_observed_;
    int wake_event_ = -1;
    int uevents_ = -1;
    std::function<void()> drain_uevents_;

    std::mutex mutex_;
    bool stopping_ = false;
    std::optional<Desired> desired_;
    std::optional<Observed> reported_;  // only used by the thread
    std::optional<Reconciler> reconciler_;
    std::thread thread_;
};

}  // namespace memtide::agent

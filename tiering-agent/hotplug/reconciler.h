#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>

#include "common/base/error.h"
#include "tiering-agent/hotplug/host.h"
#include "tiering-agent/hotplug/plan.h"

namespace memtide::agent {

struct RetryTimes {
    std::chrono::milliseconds min{50};  // doubles with each failure in a row ...
    std::chrono::milliseconds max{5'000};
    std::chrono::milliseconds drain_max{250};  // ... up to this while a drain still has time
};

// Looks, plans, acts, and remembers what failed so that it is not tried in a tight loop. Not thread safe.
class Reconciler {
  public:
    using Clock = std::chrono::steady_clock;

    // `cancelled` is asked between actions: true ends the pass. `on_observed` is told what was seen before
    // anything is done about it, since that may take long.
    Reconciler(Host& host, RetryTimes retry, std::function<bool()> cancelled,
               std::function<void(const Observed&)> on_observed);

    struct Pass {
        bool acted = false;  // look again: something may have changed
        std::optional<Clock::time_point> retry_at;
    };
    // kUnavailable and others when the host cannot be looked at.
    Result<Pass> pass(const Desired& desired, WallTime now, Clock::time_point steady_now);

  private:
    struct Attempt {
        std::optional<Action> done;  // the last action, when it said that it worked
        Clock::time_point next_try{};
        Clock::time_point window_start{};
        int actions_in_window = 0;
    };

    bool try_action(const Action& action, WallTime now, Clock::time_point steady_now, Pass& pass);
    void note_result(const Action& action, ActionResult result, WallTime now, Clock::time_point steady_now);
    void forget_settled(const Plan& plan);

    Host& host_;
    RetryTimes retry_;
    std::function<bool()> cancelled_;
    std::function<void(const Observed&)> on_observed_;
    Notes notes_;
    std::map<RegionId, Attempt> attempts_;
    Seen last_seen_;
};

}  // namespace memtide::agent

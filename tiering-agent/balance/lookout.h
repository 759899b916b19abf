#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <vector>

#include "tiering-agent/balance/watch.h"
#include "tiering-agent/policy/usual.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {

// Glances at processes while the balancer rests, and says when more of the slower tiers is touched than used
// to be: then it is time to look. Not thread safe.
class Lookout {
  public:
    // At so many processes at once, the largest ones.
    static constexpr std::size_t kMost = 8;

    struct Glances {
        std::chrono::milliseconds window{};
        std::chrono::microseconds budget{};  // for all of them
        double matters = 0;                  // pages
        std::function<void(std::chrono::milliseconds)> sleep;
    };
    // Whether it is time. Processes that are gone, and what else comes to nothing, are passed over.
    bool is_time(Sentinel& sentinel, const std::vector<const Watch*>& watches, const Glances& how);
    // Pages have moved: what was usual is not any more.
    void forget() { usual_.forget(); }

  private:
    Usual usual_;
    std::chrono::milliseconds window_{};  // of the last glances
};

// Pages of other tiers than the fastest that were touched in a window, on the average.
double slow_touches(const HeatMap& heat, const Glance& glance);

}  // namespace memtide::agent

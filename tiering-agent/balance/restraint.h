#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/sysfs/files.h"
#include "tiering-agent/policy/move_pace.h"
#include "tiering-agent/policy/targets.h"

namespace memtide::agent {

// What holds the moves of each target back: its rate limit, and that its processes, or others on the machine,
// wait for memory. Not thread safe.
class Restraint {
  public:
    using Time = std::chrono::steady_clock::time_point;
    // What a target had in the last round.
    struct Target {
        std::string cgroup{};           // of its processes, the one with most memory; or none
        std::uint64_t moved_pages = 0;  // ever
    };

    // Before the plans of a round; at most once a second it asks the kernel who waited. `targets` are by
    // position. `latency`: of the fastest tier, as a multiple of what it is when idle. What may be moved
    // since the last call can be used, for up to a second.
    void note(const Files& files, const std::vector<TieringTarget>& targets, const std::vector<Target>& now,
              double latency, Time time);
    // Takes so many pages from what the target may still move up (or down). False: it may not.
    bool spend(std::size_t target, bool up, std::uint32_t pages);
    // Of its full pace, from 1/64 to 1; what slowed it down.
    [[nodiscard]] double share(std::size_t target) const { return targets_.at(target).pace.share(); }
    [[nodiscard]] bool is_pressure(std::size_t target) const {
        return targets_.at(target).pace.is_pressure();
    }
    // The targets are others.
    void forget() { targets_.clear(); }

  private:
    struct OfTarget {
        MovePace pace;
        std::optional<std::chrono::microseconds> stalled{};  // of its largest cgroup, when asked last
        std::string cgroup{};
        std::uint64_t moved_pages = 0;
        double rate = 0;  // pages a second in each direction; 0: any number
        double up = 0;    // pages left
        double down = 0;
    };
    std::vector<OfTarget> targets_;
    Time asked_{};
    Time filled_{};
};

}  // namespace memtide::agent

#pragma once

#include <optional>

namespace memtide::agent {

// How fast pages of one target may move: as fast as can be, as long as nobody suffers. Each step in which its
// processes waited for memory more than they may, or memory answered much later than it can, halves the pace;
// each calm second gives an eighth of the full one back. A pure state machine: no clock of its own.
class MovePace {
  public:
    struct Options {
        double pressure = 0.1;  // share of the time that some process may wait for memory
    };
    // What has been since the last call.
    struct Interval {
        double seconds = 0;
        std::optional<double> pressure{};  // share of the time; nothing where the kernel does not tell
        double latency = 1;  // of the memory that is copied, as a multiple of what it is when idle
        bool moved = false;  // pages of the target
    };

    explicit MovePace(const Options& options) : options_(options) {}
    void note(const Interval& interval);

    // Of the full pace, from 1/64 to 1.
    [[nodiscard]] double share() const { return share_; }
    // What slowed it down last; only while it is slower than full.
    [[nodiscard]] bool is_pressure() const { return is_pressure_; }

  private:
    Options options_;
    double share_ = 1;
    bool is_pressure_ = false;
};

}  // namespace memtide::agent

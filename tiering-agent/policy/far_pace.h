#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memtide::agent {

// Why no more goes to the far tier now, or that it does.
enum class FarState {
    kNothingCold,  // nothing has been untouched for long enough
    kSending,
    kSlowed,     // more than 2 % of what went lately came back too soon
    kComesBack,  // what comes back in a minute is at the limit
    kPressure,   // processes wait for memory
    kFull,       // no room there
};
std::string_view to_string(FarState state);  // "nothing-cold", "sending", "slowed", "comes-back", ...

// How many cold pages of one cgroup go to the far tier in an interval. Nobody can know beforehand what will
// be missed, so it is found out, at a price that is fixed first: `refaults` of the working set may come back
// in a minute. The rate grows slowly while less than half of that comes back, stays while more does, and is
// halved when it is more or when over 2 % of what went lately came back within `after`; at the limit, and
// while processes wait for memory (`pressure`), nothing goes. A pure state machine: no clock of its own.
class FarPace {
  public:
    struct Options {
        std::chrono::duration<double> after{600};
        double pressure = 0.001;
        double refaults = 0.002;
        bool sees_reads =
            false;  // what looks cold is untouched, and not only unwritten: the rate grows faster
    };
    // What has been since the last call. Pages of 4 KiB.
    struct Interval {
        double seconds = 0;
        std::optional<double> pressure{};  // share of the time; nothing where the kernel does not tell
        std::uint64_t returned = 0;        // by the kernel's count, or our own
        std::uint64_t returned_soon = 0;   // of what was sent, too soon
        std::uint64_t sent = 0;
        std::uint64_t resident = 0;
        std::uint64_t working_set = 0;
        std::uint64_t cold = 0;  // that may go
        std::uint64_t room = 0;  // in the far tier
    };

    explicit FarPace(const Options& options) : options_(options) {}
    // As Options have it; it may be watched in another way now.
    void set_sees_reads(bool sees) { options_.sees_reads = sees; }
    // Pages that may go now.
    std::uint64_t note(const Interval& interval);

    [[nodiscard]] FarState state() const { return state_; }
    [[nodiscard]] double pages_per_minute() const { return rate_; }
    [[nodiscard]] double returns_per_minute() const { return returns_; }
    [[nodiscard]] double returns_allowed() const { return allowed_; }

  private:
    [[nodiscard]] double haste() const;
    void decay(const Interval& interval);
    FarState judge(const Interval& interval);
    void halve(double least);

    Options options_;
    FarState state_ = FarState::kNothingCold;
    double rate_ = 0;        // pages a minute; 0: not begun
    double returns_ = 0;     // of the last minute, older ones fading
    double allowed_ = 0;     // of them
    double sent_ = 0;        // lately: within about `after`
    double soon_ = 0;        // of these, came back
    double calm_ = 0;        // seconds since the rate was halved
    double pause_left_ = 0;  // seconds
    double pause_ = 0;       // the last one
    double saved_up_ = 0;    // pages that were allowed and not used
};

}  // namespace memtide::agent

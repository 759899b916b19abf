#include "tiering-agent/policy/move_pace.h"

#include <algorithm>

namespace memtide::agent {
namespace {

constexpr double kLeastShareOfPace = 1.0 / 64;
constexpr double kBackASecond = 1.0 / 8;  // a second
// Copying alone makes memory answer later: that is only too late when it is this many times as late.
constexpr double kMuchLater = 3;

}  // namespace

void MovePace::note(const Interval& interval) {
    const bool waits = interval.pressure.value_or(0) > options_.pressure;
    const bool is_late = interval.moved && interval.latency > kMuchLater;
    if (waits || is_late) {
        share_ = std::max(share_ / 2, kLeastShareOfPace);
        is_pressure_ = waits;
    } else {
        share_ = std::min(share_ + kBackASecond * interval.seconds, 1.0);
    }
}

}  // namespace memtide::agent

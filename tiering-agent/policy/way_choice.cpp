#include "tiering-agent/policy/way_choice.h"

namespace memtide::agent {
namespace {

constexpr unsigned kTries = 2;                      // of each at the start
constexpr unsigned kTrialEvery = 32;                // windows
constexpr double kWeight = 0.5;                     // of the newest
constexpr double kFewWrites = 0.6;                  // of what is touched: then writes do not tell
constexpr double kMostlyWrites = 0.75;              // then they do again
constexpr std::chrono::seconds kLongestPeriod{60};  // from one window of the first way to the next

WayChoice::Way other(WayChoice::Way way) {
    return way == WayChoice::Way::kWrites ? WayChoice::Way::kAccesses : WayChoice::Way::kWrites;
}

}  // namespace

bool WayChoice::is_known() const { return writes_.times >= kTries && accesses_.times >= kTries; }

WayChoice::Way WayChoice::next() const {
    if (mostly_huge_) return Way::kAccesses;
    if (!is_known()) return writes_.times <= accesses_.times ? Way::kWrites : Way::kAccesses;
    return windows_ % kTrialEvery == 0 ? other(way_) : way_;
}

void WayChoice::note(Way way, std::uint64_t touched_pages) {
    Tried& tried = way == Way::kWrites ? writes_ : accesses_;
    tried.touched += (tried.times == 0 ? 1 : kWeight) * (double(touched_pages) - tried.touched);
    ++tried.times;
    ++windows_;
    decide();
}

void WayChoice::note_cost(std::chrono::microseconds disturbance) {
    cost_us_ += kWeight * (double(disturbance.count()) - cost_us_);
    decide();
}

void WayChoice::decide() {
    if (!is_known()) return;
    const double enough = way_ == Way::kWrites ? kFewWrites : kMostlyWrites;
    const bool writes_tell = writes_.touched >= enough * accesses_.touched;
    const bool is_dear = cost_us_ / slowdown_ > double(std::chrono::microseconds(kLongestPeriod).count());
    way_ = writes_tell && !is_dear ? Way::kWrites : Way::kAccesses;
}

}  // namespace memtide::agent

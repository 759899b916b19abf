#include "tiering-agent/policy/way_choice.h"

#include <algorithm>

namespace memtide::agent {
namespace {

constexpr unsigned kTries = 2;  // of each at the start
// Windows from one trial to the next; while what is seen is as before they get twice as many each time.
constexpr unsigned kFirstTrialIn = 2;
constexpr unsigned kMostBetweenTrials = 32;
constexpr double kAsBefore = 2;         // times as much, or as little
constexpr double kWeight = 0.5;         // of the newest
constexpr double kFewWrites = 0.6;      // of what is touched: then writes do not tell
constexpr double kMostlyWrites = 0.75;  // then they do again
// Who writes much is slowed down by the first write to each page, so that a short window sees fewer pages
// written than are touched while nobody asks: this share of the time, and this one of what is touched, is
// much.
constexpr double kMuchFaulting = 0.05;
constexpr double kSomeWrites = 0.15;
constexpr std::chrono::seconds kLongestPeriod{60};  // from one window of the first way to the next

WayChoice::Way other(WayChoice::Way way) {
    return way == WayChoice::Way::kWrites ? WayChoice::Way::kAccesses : WayChoice::Way::kWrites;
}

}  // namespace

bool WayChoice::is_known() const { return writes_.times >= kTries && accesses_.times >= kTries; }

WayChoice::Way WayChoice::next() const {
    if (only_accesses_) return Way::kAccesses;
    if (!is_known()) return writes_.times <= accesses_.times ? Way::kWrites : Way::kAccesses;
    return to_trial_ == 0 ? other(way_) : way_;
}

void WayChoice::note(Way way, std::uint64_t touched_pages, double faulting) {
    const bool was_trial = is_known() && is_trial();
    const Way before = way_;
    Tried& tried = way == Way::kWrites ? writes_ : accesses_;
    const auto touched = double(touched_pages);
    const bool is_news =
        !was_trial && (touched > kAsBefore * tried.touched || kAsBefore * touched < tried.touched);
    tried.touched += (tried.times == 0 ? 1 : kWeight) * (touched - tried.touched);
    ++tried.times;
    if (way == Way::kWrites) faulting_ += kWeight * (faulting - faulting_);
    decide();
    if (was_trial) {
        between_trials_ = std::min(2 * between_trials_, kMostBetweenTrials);
        to_trial_ = between_trials_;
    } else if (to_trial_ > 0) {
        --to_trial_;
    }
    // A program that has read its data in and begins to work, say: what the other sees is other now, too.
    if (is_news || way_ != before) {
        between_trials_ = kFirstTrialIn;
        to_trial_ = std::min(to_trial_, kFirstTrialIn);
    }
}

void WayChoice::note_cost(std::chrono::microseconds disturbance) {
    cost_us_ += kWeight * (double(disturbance.count()) - cost_us_);
    decide();
}

void WayChoice::decide() {
    if (!is_known()) return;
    const double enough = way_ == Way::kWrites ? kFewWrites : kMostlyWrites;
    const bool writes_tell =
        writes_.touched >= enough * accesses_.touched ||
        (faulting_ >= kMuchFaulting && writes_.touched >= kSomeWrites * accesses_.touched);
    const bool is_dear = cost_us_ / slowdown_ > double(std::chrono::microseconds(kLongestPeriod).count());
    way_ = writes_tell && !is_dear ? Way::kWrites : Way::kAccesses;
}

}  // namespace memtide::agent

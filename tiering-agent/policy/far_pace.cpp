#include "tiering-agent/policy/far_pace.h"

#include <algorithm>
#include <cmath>

namespace memtide::agent {
namespace {

constexpr double kMinute = 60;

// Of what is resident, a minute: to begin with, and at most. Far above this what comes back is not seen soon
// enough. For `after` of ten minutes; what is missed sooner is known sooner, up to five times.
constexpr double kUsualAfter = 600;
constexpr double kMostHaste = 5;
constexpr double kFirstShare = 0.01;
constexpr double kMostShare = 0.12;
// A minute of slow growth, where reads are seen and where not.
constexpr double kGrowth = 8;
constexpr double kGrowthBlind = 3;

// Of what went lately; with fewer than so many pages it says nothing.
constexpr double kSoonShare = 0.02;
constexpr double kFewPages = 16;
// Below this share of the limit the rate grows.
constexpr double kGrowBelow = 0.5;

// A working set is at least so much of what is resident: a tracker that sees no reads knows too little of it.
constexpr double kLeastWorkingSet = 1.0 / 16;

// What was not used in time is not made up for.
constexpr double kMostSeconds = 10;

// How long it waits after pressure; doubles up to the longest.
constexpr double kFirstPause = 30;
constexpr double kLongestPause = 600;

}  // namespace

std::string_view to_string(FarState state) {
    switch (state) {
        case FarState::kNothingCold:
            return "nothing-cold";
        case FarState::kSending:
            return "sending";
        case FarState::kSlowed:
            return "slowed";
        case FarState::kComesBack:
            return "comes-back";
        case FarState::kPressure:
            return "pressure";
        case FarState::kFull:
            return "full";
    }
    return "?";
}

double FarPace::haste() const {
    return std::clamp(kUsualAfter / std::max(options_.after.count(), 1.0), 1.0, kMostHaste);
}

void FarPace::decay(const Interval& interval) {
    const double minute = std::exp(-interval.seconds / kMinute);
    const double lately = std::exp(-interval.seconds / std::max(options_.after.count(), kMinute));
    returns_ = returns_ * minute + double(interval.returned);
    sent_ = sent_ * lately + double(interval.sent);
    soon_ = soon_ * lately + double(interval.returned_soon);
    calm_ += interval.seconds;
    pause_left_ = std::max(0.0, pause_left_ - interval.seconds);
    if (calm_ > kLongestPause) pause_ = 0;
}

// Once for what is one and the same news: it takes a minute until its effect is seen.
void FarPace::halve(double least) {
    if (calm_ < kMinute) return;
    calm_ = 0;
    rate_ = std::max(rate_ / 2, least);
}

FarState FarPace::judge(const Interval& interval) {
    // Even if all came back at once, that would be half of what is allowed.
    const double least = allowed_ / 2;
    if (rate_ == 0) {
        rate_ = std::max(kFirstShare * haste() * double(interval.resident), least);
        calm_ = kMinute;
    }
    if (interval.pressure.value_or(0) > options_.pressure && pause_left_ == 0) {
        calm_ = kMinute;
        halve(1);
        pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
        pause_left_ = pause_;
    }
    if (pause_left_ > 0) return FarState::kPressure;
    if (returns_ > allowed_) {
        halve(least);
        return FarState::kComesBack;
    }
    const bool came_back_soon = soon_ >= kFewPages && soon_ > kSoonShare * sent_;
    if (came_back_soon) halve(least);
    if (interval.cold == 0) return FarState::kNothingCold;
    if (interval.room == 0) return FarState::kFull;
    if (came_back_soon) return FarState::kSlowed;
    // A rate that is not used proves nothing.
    const bool was_used =
        double(interval.sent) >= rate_ * std::min(interval.seconds, kMostSeconds) / kMinute / 2;
    if (was_used && returns_ < kGrowBelow * allowed_)
        rate_ *= std::pow(options_.sees_reads ? kGrowth : kGrowthBlind,
                          haste() * std::min(interval.seconds, kMostSeconds) / kMinute);
    rate_ = std::clamp(rate_, least, std::max(least, kMostShare * haste() * double(interval.resident)));
    return FarState::kSending;
}

std::uint64_t FarPace::note(const Interval& interval) {
    decay(interval);
    const double working_set =
        std::max(double(interval.working_set), kLeastWorkingSet * double(interval.resident));
    allowed_ = std::max(options_.refaults * working_set, kFewPages);
    state_ = judge(interval);
    if (state_ != FarState::kSending && state_ != FarState::kSlowed) {
        saved_up_ = 0;
        return 0;
    }
    // A huge page can be saved up for.
    constexpr double kHuge = 512;
    const double now = rate_ * std::min(interval.seconds, kMostSeconds) / kMinute;
    saved_up_ = std::min(saved_up_ + now, std::max(now, kHuge));
    const auto pages = std::min({static_cast<std::uint64_t>(saved_up_), interval.cold, interval.room});
    saved_up_ -= double(pages);
    return pages;
}

}  // namespace memtide::agent

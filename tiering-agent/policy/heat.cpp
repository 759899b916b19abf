#include "tiering-agent/policy/heat.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace memtide::agent {
namespace {

// The first n windows are a plain mean of n samples; an exponential average of weight 1/n, which it becomes
// then, has the variance of 2n - 1.
constexpr unsigned most_samples(unsigned windows) { return 2 * windows - 1; }

constexpr double kLeastShare = 0.02;

double share_variance(unsigned heat, double count) {
    const double share = std::clamp(heat / double{PageHeat::kMost}, kLeastShare, 1 - kLeastShare);
    return share * (1 - share) / count;
}

// Further from the lasting share than this the recent one is news: two standard deviations.
std::array<std::uint8_t, PageHeat::kMost + 1> bounds_of_chance() {
    std::array<std::uint8_t, PageHeat::kMost + 1> bounds{};
    for (unsigned heat = 0; heat <= PageHeat::kMost; ++heat) {
        const double deviation = std::sqrt(share_variance(heat, most_samples(PageHeat::kRecentWindows)));
        bounds[heat] = static_cast<std::uint8_t>(std::min(254.0, 2 * deviation * PageHeat::kMost));
    }
    return bounds;
}
const std::array<std::uint8_t, PageHeat::kMost + 1> kBounds = bounds_of_chance();

// How many standard deviations a share is above nothing.
struct Sureness {
    std::array<float, PageHeat::kMost + 1> lasting{};
    std::array<float, PageHeat::kMost + 1> recent{};
};
Sureness surenesses() {
    Sureness sureness;
    for (unsigned heat = 0; heat <= PageHeat::kMost; ++heat) {
        const double share = heat / double{PageHeat::kMost};
        const auto above_nothing = [&](unsigned windows) {
            return static_cast<float>(share / std::sqrt(share_variance(heat, most_samples(windows))));
        };
        sureness.lasting[heat] = above_nothing(PageHeat::kLastingWindows);
        sureness.recent[heat] = above_nothing(PageHeat::kRecentWindows);
    }
    return sureness;
}
const Sureness kSureness = surenesses();

// old + (seen - old) / weight, rounded up or down at random so that the mean is exact.
constexpr unsigned average(unsigned old, unsigned seen, unsigned weight, std::uint32_t dither) {
    return (old * (weight - 1) + seen + dither % weight) / weight;
}

}  // namespace

void PageHeat::observe(bool touched, unsigned windows, std::uint32_t dither) {
    lasting_ = static_cast<std::uint8_t>(
        average(lasting_, touched ? kMost : 0, std::min(windows + 1, kLastingWindows), dither));
    recent_ =
        average(recent_, touched ? kRecentMost : 0, std::min(windows + 1, kRecentWindows), dither >> 16) &
        kRecentMost;
}

bool PageHeat::is_changing() const {
    const unsigned now = recent();
    const unsigned before = lasting_;
    if (now <= before) return before - now > kBounds[before];
    return now - before > kBounds[before] && kSureness.recent[now] >= kSureness.lasting[before];
}

double variance_of_heat(unsigned heat, bool changing, unsigned windows) {
    const unsigned most = changing ? PageHeat::kRecentWindows : PageHeat::kLastingWindows;
    return share_variance(heat, std::clamp(windows, 1U, most_samples(most))) * PageHeat::kMost *
           PageHeat::kMost;
}

double touches_of_heat(unsigned heat) {
    static const auto touches = [] {
        std::array<double, PageHeat::kMost + 1> table{};
        for (unsigned each = 0; each <= PageHeat::kMost; ++each)
            table[each] = -std::log1p(-std::min(each / double{PageHeat::kMost}, kHighestShare));
        return table;
    }();
    return touches[std::min(heat, PageHeat::kMost)];
}

}  // namespace memtide::agent

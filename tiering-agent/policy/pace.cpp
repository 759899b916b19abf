#include "tiering-agent/policy/pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace memtide::agent {
namespace {

// Of the pages that the faster tier holds a window should touch between these shares, and is set to the
// middle one when it does not.
constexpr double kTooFew = 0.1;
constexpr double kWanted = 0.3;
constexpr double kTooMany = 0.5;
constexpr std::chrono::milliseconds kFirstWindow{200};
constexpr double kMostStep = 2;  // a window grows or shrinks by no more at once
// Unless it touches this share of all that is there: it tells nothing, and nobody knows how much too long it
// is.
constexpr double kSaturated = 0.9;
constexpr double kStepDown = 8;

constexpr unsigned kMostDoublings = 6;

// Less than this share of the faster tier is not worth being quick about.
constexpr double kMoving = 0.001;

}  // namespace

std::uint64_t Pace::wanted_pages(std::uint64_t fast_pages) {
    return static_cast<std::uint64_t>(kWanted * double(fast_pages));
}

Pace::Pace(const Options& options)
    : options_(options), window_(std::clamp(kFirstWindow, options.shortest_window, options.longest_window)) {}

void Pace::note(const Round& round) {
    const bool moves = double(round.moved_pages) > kMoving * double(round.fast_pages);
    quiet_rounds_ = moves || is_surprised(round) ? 0 : std::min(quiet_rounds_ + 1, 1'000U);
    set_window(round);
    set_rest(round);
}

// The usual number is an average over some rounds; what a load that stays as it is touches differs from it by
// little more than its square root.
bool Pace::is_surprised(const Round& round) {
    if (round.present_pages == 0) return false;
    constexpr double kDeviations = 5;
    constexpr double kWeight = 0.25;
    const auto touched = double(round.touched_slow_pages);
    const double usual = std::exchange(
        slow_touches_, slow_touches_ < 0 ? touched : slow_touches_ + kWeight * (touched - slow_touches_));
    return usual >= 0 &&
           touched > usual + kDeviations * std::sqrt(usual + 1) + kMoving * double(round.fast_pages);
}

void Pace::set_window(const Round& round) {
    if (round.fast_pages == 0 || round.present_pages == 0) return;
    const double share = double(round.touched_pages) / double(round.fast_pages);
    const bool is_right = share >= kTooFew && share <= kTooMany;
    if (is_right && !round.is_cut) return;
    const bool is_saturated = double(round.touched_pages) > kSaturated * double(round.present_pages);
    const double step = is_saturated ? 1 / kStepDown
                        : is_right   ? 1 / kMostStep
                        : share > 0  ? std::clamp(kWanted / share, 1 / kMostStep, kMostStep)
                                     : kMostStep;
    const auto next = milliseconds(std::llround(double(window_.count()) * step));
    const auto shortest =
        std::min(options_.longest_window,
                 std::max(options_.shortest_window, std::chrono::ceil<milliseconds>(round.blur)));
    const auto before = std::exchange(window_, std::clamp(next, shortest, options_.longest_window));
    if (window_ != before) slow_touches_ = -1;
}

void Pace::set_rest(const Round& round) {
    const bool changing = is_changing();
    even_rounds_ = round.is_even && !changing ? std::min(even_rounds_ + 1, kMostDoublings) : 0;
    const auto at_share = [](std::chrono::microseconds cost, double share) {
        return std::chrono::duration_cast<milliseconds>(cost / share);
    };
    const auto affordable = std::max(
        at_share(round.cost, changing ? options_.processor_share_changing : options_.processor_share),
        at_share(round.disturbance, changing ? options_.slowdown_changing : options_.slowdown));
    const auto period =
        std::max(affordable, changing ? options_.shortest_period_changing : options_.shortest_period);
    rest_ = std::min((period - window_) * (1 << even_rounds_), options_.longest_rest);
    // However long that is: what looking may cost is a promise.
    rest_ = std::max({rest_, affordable - window_, milliseconds(0)});
}

}  // namespace memtide::agent

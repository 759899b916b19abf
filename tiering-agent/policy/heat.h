#pragma once

#include <cstdint>

namespace memtide::agent {

// How warm a unit of memory is (a page, or a huge page as a whole), in two bytes: the share of the windows in
// which it was touched, twice. The *lasting* share is a moving average over up to 2 * kLastingWindows windows
// and ranks what is steady; the *recent* one forgets in a handful and notices what changes. Both are rounded
// at random, so that rates far below a step of theirs still average out to what they are. And in which tier
// the unit lies.
class PageHeat {
  public:
    static constexpr unsigned kTiers = 7;
    static constexpr std::uint8_t kNowhere = 7;  // not present: never touched, swapped out
    static constexpr unsigned kMost = 255;       // touched in every window
    static constexpr unsigned kLastingWindows = 32;
    static constexpr unsigned kRecentWindows = 4;

    // One window has passed. `windows` is how many before it were observed: the first ones weigh more.
    // `dither` is any evenly distributed number.
    void observe(bool touched, unsigned windows, std::uint32_t dither);

    [[nodiscard]] unsigned lasting() const { return lasting_; }
    [[nodiscard]] unsigned recent() const { return recent_ * kMost / kRecentMost; }
    // Whether the recent share is another than the lasting one by more than chance explains, and tells more:
    // what gets warmer has a lasting share of many windows after a while, which is surer than a recent one of
    // a few.
    [[nodiscard]] bool is_changing() const;
    // The share to act on: the recent one of what is changing, else the lasting one.
    [[nodiscard]] unsigned heat() const { return is_changing() ? recent() : lasting(); }

    [[nodiscard]] std::uint8_t tier() const { return tier_; }
    void set_tier(std::uint8_t tier) { tier_ = tier & 7U; }

  private:
    static constexpr unsigned kRecentMost = 31;
    std::uint8_t lasting_ = 0;
    std::uint8_t recent_ : 5 = 0;
    std::uint8_t tier_ : 3 = kNowhere;
};
static_assert(sizeof(PageHeat) == 2);

// The variance of a share of windows that an average over as many as PageHeat's has by chance; shares in
// units of 1 / kMost, never quite 0 or 1, since a few windows do not prove that.
double variance_of_heat(unsigned heat, bool changing, unsigned windows);

// A share that windows have shown is never quite 1: half a step of PageHeat's below.
inline constexpr double kHighestShare = 1 - 0.5 / PageHeat::kMost;

// Touches per window (Poisson) of a unit that is touched in this share of them.
double touches_of_heat(unsigned heat);

}  // namespace memtide::agent

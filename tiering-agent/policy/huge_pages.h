#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tiering-agent/policy/exchange.h"
#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {

// Of which huge pages few parts are touched, so that most of the fast memory that they take is wasted: those
// are worth splitting. And which of those that were split are better whole again: when most of their parts,
// or none, are warm. For one address space. Pure, but for what it remembers; times are of any steady clock.
// Not thread safe.
class HugePages {
  public:
    using Time = std::chrono::steady_clock::time_point;
    // Of the parts (of 4 KiB) of a huge page that is split, no more than these are touched, surely.
    static constexpr unsigned kMostParts = kPagesPerHuge / 8;
    static constexpr std::chrono::minutes kLeftAlone{10};   // what the kernel would not split, or made whole
    static constexpr std::chrono::seconds kLeastSplit{60};  // before it is made whole

    // Single pages in huge ones that a window saw touched, at random among all touches: numbers, in any
    // order.
    void note_touched(std::span<const std::uint64_t> pages);
    // What has become of pages since: after each look.
    void follow(const HeatMap& heat, Time now);

    // Huge pages that the last window saw touched, and of which too few touches are known yet: a few windows
    // more tell whether they are worth splitting.
    [[nodiscard]] std::size_t undecided() const { return undecided_; }
    // Hot huge pages in the two tiers, the hottest first, and of those the ones in the slower tier: numbers
    // of their first pages.
    [[nodiscard]] std::vector<std::uint64_t> to_split(const HeatMap& heat, const Pair& tiers,
                                                      const ExchangeOptions& options, std::size_t most,
                                                      Time now) const;
    // What was split, and is alike in all of its parts: likewise.
    [[nodiscard]] std::vector<std::uint64_t> to_join(const HeatMap& heat, const ExchangeOptions& options,
                                                     std::size_t most, Time now) const;
    // It was tried.
    void note_split(std::uint64_t page, bool done, Time now);
    void note_joined(std::uint64_t page, bool done, Time now);

    [[nodiscard]] bool is_split(std::uint64_t page) const { return split_.contains(page / kPagesPerHuge); }
    // What it takes itself, in bytes.
    [[nodiscard]] std::size_t memory() const;

  private:
    struct Sketch {
        std::bitset<kPagesPerHuge> parts;  // touched
        std::uint16_t samples = 0;
        bool is_skewed = false;  // as of the last verdict
        bool is_judged = false;
    };
    [[nodiscard]] bool is_left_alone(std::uint64_t group, Time now) const;

    // By page / kPagesPerHuge.
    std::map<std::uint64_t, Sketch> sketches_;
    std::map<std::uint64_t, Time> split_;       // since when
    std::map<std::uint64_t, Time> left_alone_;  // until when
    std::size_t undecided_ = 0;
};

// Whether so many touches at random that fell on so few different parts surely (three standard deviations)
// come from no more than `most_parts` that are touched alike: the classical occupancy problem (W. Feller, An
// Introduction to Probability Theory, vol. I).
bool is_surely_skewed(unsigned touches, unsigned different_parts, unsigned most_parts);

// Pages of the slower tier that are warm enough to be moved up; what of them has room there does not need
// others to be split.
std::uint64_t warm_slow_pages(std::span<const Space> spaces, const Pair& tiers,
                              const ExchangeOptions& options);

}  // namespace memtide::agent

#pragma once

#include <array>
#include <cstdint>

#include "tiering-agent/policy/heat.h"

namespace memtide::agent {

// What is behind the lasting shares of many units: each was seen in some dozens of windows, so that units
// that are touched alike look spread out, the warmest of them too warm and the coldest too cold. How the true
// shares of all of them are distributed is estimated by maximum likelihood (N. Laird, Nonparametric Maximum
// Likelihood Estimation of a Mixing Distribution, JASA 73, 1978); that and what was seen of a unit tell what
// its own share is (empirical Bayes: H. Robbins, 1956).
class TrueHeat {
  public:
    static constexpr std::size_t kHeats = PageHeat::kMost + 1;
    using Counts = std::array<std::uint64_t, kHeats>;

    // Of units by their lasting share, which so many windows have shown.
    TrueHeat(const Counts& counts, unsigned windows);

    // Of a unit with that lasting share, which some have; of PageHeat::kMost, and of its square.
    [[nodiscard]] double mean(unsigned heat) const { return mean_[heat]; }
    [[nodiscard]] double variance(unsigned heat) const { return variance_[heat]; }

  private:
    std::array<double, kHeats> mean_{};
    std::array<double, kHeats> variance_{};
};

}  // namespace memtide::agent

#include "tiering-agent/policy/spread.h"

#include <algorithm>

namespace memtide::agent {
namespace {

constexpr double kOverloaded = 1.25;  // times the slower tier's latency
constexpr double kRelaxed = 0.9;
// Below this multiple of what it is when idle it is not load that makes it slow: tiers may be alike, and
// probes differ.
constexpr double kLoaded = 1.5;
constexpr int kProbes = 3;  // that have to agree
constexpr int kProbesBack = 6;
constexpr double kStep = 0.05;
constexpr double kLeastFast = 0.3;
// What seemed to be idle may have been luck: it is forgotten slowly.
constexpr double kForget = 1.0001;

}  // namespace

void Spread::note(const Probe& probe) {
    if (probe.fast <= 0 || probe.slow <= 0) return;
    // Whoever is started under load has not seen it idle: then it is no slower than the slower tier.
    const double lowest = std::min(probe.fast, probe.slow);
    idle_fast_ = idle_fast_ == 0 ? lowest : std::min(idle_fast_ * kForget, lowest);
    loaded_ = probe.fast / idle_fast_;
    const double ratio = probe.fast / probe.slow;
    overloaded_ = ratio > kOverloaded && loaded_ > kLoaded ? overloaded_ + 1 : 0;
    relaxed_ = ratio < kRelaxed ? relaxed_ + 1 : 0;
    if (overloaded_ >= kProbes) {
        most_fast_ = std::max(std::min(most_fast_, now_) - kStep, kLeastFast);
        overloaded_ = 0;
    }
    if (relaxed_ >= kProbesBack && most_fast_ < 1) {
        most_fast_ = std::min(most_fast_ + kStep, 1.0);
        relaxed_ = 0;
    }
}

}  // namespace memtide::agent

#include "tiering-agent/policy/true_heat.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace memtide::agent {
namespace {

// Shares that the true ones may have.
constexpr std::size_t kAtoms = 64;
using Atoms = std::array<double, kAtoms>;

// Closer to each other near none and all, where chance is small.
Atoms shares() {
    Atoms shares{};
    for (std::size_t i = 0; i < kAtoms; ++i) {
        const double sine = std::sin((double(i) + 0.5) / kAtoms * std::numbers::pi / 2);
        shares[i] = sine * sine;
    }
    return shares;
}
const Atoms kShares = shares();

Atoms logarithms(bool of_rest) {
    Atoms logs{};
    for (std::size_t i = 0; i < kAtoms; ++i)
        logs[i] = of_rest ? std::log1p(-kShares[i]) : std::log(kShares[i]);
    return logs;
}
const Atoms kLogs = logarithms(false);
const Atoms kLogsOfRest = logarithms(true);

// How likely each share makes it to see that heat in so many windows, up to a factor.
Atoms likelihoods(std::size_t heat, double windows) {
    const double touched = windows * double(heat) / PageHeat::kMost;
    Atoms likely{};
    for (std::size_t i = 0; i < kAtoms; ++i)
        likely[i] = touched * kLogs[i] + (windows - touched) * kLogsOfRest[i];
    const double most = std::ranges::max(likely);
    for (double& one : likely) one = std::exp(one - most);
    return likely;
}

struct Seen {
    std::size_t heat = 0;
    double units = 0;
    Atoms likely{};
};

double product(const Atoms& a, const Atoms& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// How many units have each share, as a part of all: the steps of EM (Dempster, Laird and Rubin, 1977), of
// which a few units do not need as many.
Atoms estimate(const std::vector<Seen>& seen) {
    constexpr double kUnitsOfAStep = 64;
    constexpr double kFewest = 30;
    constexpr double kMost = 60;
    Atoms weights{};
    weights.fill(1.0 / kAtoms);
    double all = 0;
    for (const Seen& one : seen) all += one.units;
    const auto steps = static_cast<unsigned>(std::clamp(all / kUnitsOfAStep, kFewest, kMost));
    for (unsigned step = 0; step < steps; ++step) {
        Atoms next{};
        for (const Seen& one : seen) {
            const double part = one.units / (all * product(weights, one.likely));
            for (std::size_t i = 0; i < kAtoms; ++i) next[i] += part * weights[i] * one.likely[i];
        }
        weights = next;
    }
    return weights;
}

}  // namespace

TrueHeat::TrueHeat(const Counts& counts, unsigned windows) {
    const double samples = std::clamp(windows, 1U, 2 * PageHeat::kLastingWindows - 1);
    std::vector<Seen> seen;
    for (std::size_t heat = 0; heat < kHeats; ++heat)
        if (counts[heat] > 0) seen.push_back({heat, double(counts[heat]), likelihoods(heat, samples)});
    const Atoms weights = estimate(seen);
    for (const Seen& one : seen) {
        const double all = product(weights, one.likely);
        double mean = 0;
        double square = 0;
        for (std::size_t i = 0; i < kAtoms; ++i) {
            const double part = weights[i] * one.likely[i] / all * kShares[i];
            mean += part;
            square += part * kShares[i];
        }
        mean_[one.heat] = mean * PageHeat::kMost;
        variance_[one.heat] = std::max(0.0, square - mean * mean) * PageHeat::kMost * PageHeat::kMost;
    }
}

}  // namespace memtide::agent

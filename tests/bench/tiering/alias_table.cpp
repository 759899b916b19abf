#include "tests/bench/tiering/alias_table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/bench/tiering/random.h"

namespace memtide::bench {
namespace {

constexpr double kAllThresholds = 4294967296.0;

}  // namespace

AliasTable::AliasTable(const std::vector<double>& shares) : slots_(shares.size()) {
    const std::size_t count = shares.size();
    std::vector<double> scaled(count);
    std::vector<std::size_t> small;
    std::vector<std::size_t> large;
    for (std::size_t i = 0; i < count; ++i) {
        scaled[i] = shares[i] * static_cast<double>(count);
        (scaled[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
        const std::size_t less = small.back();
        const std::size_t more = large.back();
        small.pop_back();
        const double kept = std::clamp(scaled[less] * kAllThresholds, 0.0, kAllThresholds - 1);
        slots_[less] = {static_cast<std::uint32_t>(kept), static_cast<std::uint32_t>(more)};
        scaled[more] -= 1 - scaled[less];
        if (scaled[more] >= 1) continue;
        large.pop_back();
        small.push_back(more);
    }
    for (const auto* rest : {&small, &large})
        for (const std::size_t i : *rest) slots_[i] = {~std::uint32_t{0}, static_cast<std::uint32_t>(i)};
}

std::vector<double> scrambled_zipf(std::size_t keys, std::size_t places, double exponent, unsigned phase) {
    std::vector<double> shares(places);
    double sum = 0;
    for (std::size_t rank = 0; rank < keys; ++rank) {
        const double share = std::pow(static_cast<double>(rank + 1), -exponent);
        Random hash((std::uint64_t{phase} << 48) + rank);
        shares[Random::scale(static_cast<std::uint32_t>(hash.next()), places)] += share;
        sum += share;
    }
    for (double& share : shares) share /= sum;
    return shares;
}

double best_of(std::vector<double> shares, std::size_t count) {
    std::ranges::sort(shares, std::greater());
    shares.resize(std::min(count, shares.size()));
    return std::accumulate(shares.begin(), shares.end(), 0.0);
}

}  // namespace memtide::bench

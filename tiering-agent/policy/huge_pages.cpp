#include "tiering-agent/policy/huge_pages.h"

#include <algorithm>
#include <cmath>

namespace memtide::agent {
namespace {

constexpr unsigned kLeastTouches = 16;  // for a verdict
constexpr unsigned kMostTouches = 64;   // then a new sketch begins

bool is_verdict_due(unsigned touches) {
    return touches == kLeastTouches || touches == 2 * kLeastTouches || touches == kMostTouches;
}

}  // namespace

bool is_surely_skewed(unsigned touches, unsigned different_parts, unsigned most_parts) {
    constexpr double kDeviations = 3;
    const double parts = most_parts;
    const double load = touches / parts;
    const double empty = std::exp(-load);
    const double expected = parts * (1 - empty);
    const double variance = parts * empty * (1 - (1 + load) * empty);
    return different_parts < expected - kDeviations * std::sqrt(variance);
}

void HugePages::note_touched(std::span<const std::uint64_t> pages) {
    undecided_ = 0;
    for (const std::uint64_t page : pages) {
        Sketch& sketch = sketches_[page / kPagesPerHuge];
        if (sketch.samples == kMostTouches) {
            sketch.samples = 0;
            sketch.parts.reset();
        }
        sketch.parts.set(page % kPagesPerHuge);
        ++sketch.samples;
        if (is_verdict_due(sketch.samples)) {
            sketch.is_skewed =
                is_surely_skewed(sketch.samples, static_cast<unsigned>(sketch.parts.count()), kMostParts);
            sketch.is_judged = true;
        }
        if (!sketch.is_judged) ++undecided_;
    }
}

void HugePages::follow(const HeatMap& heat, Time now) {
    const auto is_whole = [&](std::uint64_t group) {
        const HeatMap::Unit unit = heat.at(group * kPagesPerHuge);
        return unit.pages == kPagesPerHuge && unit.heat.tier() != PageHeat::kNowhere;
    };
    std::erase_if(sketches_, [&](const auto& one) { return !is_whole(one.first); });
    // The kernel has made it whole again: it would do so each time.
    std::erase_if(split_, [&](const auto& one) {
        if (!is_whole(one.first)) return false;
        left_alone_[one.first] = now + kLeftAlone;
        return true;
    });
    std::erase_if(left_alone_, [&](const auto& one) { return one.second <= now; });
}

bool HugePages::is_left_alone(std::uint64_t group, Time now) const {
    const auto found = left_alone_.find(group);
    return found != left_alone_.end() && now < found->second;
}

std::vector<std::uint64_t> HugePages::to_split(const HeatMap& heat, const Pair& tiers,
                                               const ExchangeOptions& options, std::size_t most,
                                               Time now) const {
    struct Candidate {
        unsigned heat = 0;
        bool is_slow = false;
        std::uint64_t page = 0;
    };
    std::vector<Candidate> candidates;
    for (const auto& [group, sketch] : sketches_) {
        if (!sketch.is_skewed || is_left_alone(group, now)) continue;
        const HeatMap::Unit unit = heat.at(group * kPagesPerHuge);
        const std::uint8_t tier = unit.heat.tier();
        if (unit.pages != kPagesPerHuge || unit.windows < kLeastWindows) continue;
        if ((tier != tiers.fast && tier != tiers.slow) || unit.heat.heat() < options.least_heat) continue;
        candidates.push_back({unit.heat.heat(), tier == tiers.slow, unit.page});
    }
    std::ranges::stable_sort(candidates, std::ranges::greater{},
                             [](const Candidate& one) { return std::pair(one.heat, one.is_slow); });
    if (candidates.size() > most) candidates.resize(most);
    std::vector<std::uint64_t> pages;
    pages.reserve(candidates.size());
    for (const Candidate& one : candidates) pages.push_back(one.page);
    return pages;
}

std::vector<std::uint64_t> HugePages::to_join(const HeatMap& heat, const ExchangeOptions& options,
                                              std::size_t most, Time now) const {
    std::vector<std::uint64_t> pages;
    for (const auto& [group, since] : split_) {
        if (pages.size() == most) break;
        if (now < since + kLeastSplit || is_left_alone(group, now)) continue;
        const std::uint64_t first = group * kPagesPerHuge;
        const std::uint8_t tier = heat.at(first).heat.tier();
        unsigned together = 0;  // in the tier of the first
        unsigned warm = 0;
        heat.for_each_around(first, [&](const HeatMap::Unit& part) {
            together += part.heat.tier() == tier ? part.pages : 0;
            warm += part.heat.heat() >= options.least_heat ? part.pages : 0;
        });
        if (together == kPagesPerHuge && (warm == 0 || warm > kPagesPerHuge / 2)) pages.push_back(first);
    }
    return pages;
}

void HugePages::note_split(std::uint64_t page, bool done, Time now) {
    const std::uint64_t group = page / kPagesPerHuge;
    sketches_.erase(group);
    if (done)
        split_[group] = now;
    else
        left_alone_[group] = now + kLeftAlone;
}

void HugePages::note_joined(std::uint64_t page, bool done, Time now) {
    const std::uint64_t group = page / kPagesPerHuge;
    if (done)
        split_.erase(group);
    else
        left_alone_[group] = now + kLeftAlone;
}

std::size_t HugePages::memory() const {
    constexpr std::size_t kTree = 4 * sizeof(void*);  // of each node
    return sizeof *this + sketches_.size() * (sizeof(std::pair<std::uint64_t, Sketch>) + kTree) +
           (split_.size() + left_alone_.size()) * (sizeof(std::pair<std::uint64_t, Time>) + kTree);
}

std::uint64_t warm_slow_pages(std::span<const Space> spaces, const Pair& tiers,
                              const ExchangeOptions& options) {
    std::uint64_t pages = 0;
    for (const Space& space : spaces)
        space.heat->for_each([&](const HeatMap::Unit& unit) {
            if (unit.heat.tier() == tiers.slow && unit.heat.heat() >= options.least_heat) pages += unit.pages;
        });
    return pages;
}

}  // namespace memtide::agent

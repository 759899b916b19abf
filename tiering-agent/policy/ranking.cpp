#include "tiering-agent/policy/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tiering-agent/policy/true_heat.h"

namespace memtide::agent::ranking {

const std::vector<std::size_t>& classes_by_rank(bool coldest_first) {
    const auto make = [](bool ascending) {
        std::vector<std::size_t> classes(kClasses);
        std::iota(classes.begin(), classes.end(), std::size_t{0});
        std::ranges::stable_sort(classes, {}, [ascending](std::size_t kind) {
            return ascending ? rank_of(kind) : -rank_of(kind);
        });
        return classes;
    };
    static const std::vector<std::size_t> kColdestFirst = make(true);
    static const std::vector<std::size_t> kHottestFirst = make(false);
    return coldest_first ? kColdestFirst : kHottestFirst;
}

Ranking::Ranking(const Space& space, const Pair& tiers) : space_(&space), tiers_(tiers) {
    HintCursor cursor(space.hints);
    std::uint64_t pinned = 0;
    TrueHeat::Counts counts{};
    std::uint64_t units = 0;
    std::uint64_t windows = 0;
    space.heat->for_each([&](const HeatMap::Unit& unit) {
        if (!takes_part(unit)) return;
        if (!space.hints.empty() && cursor.of(unit.page, unit.pages) == Hint::kPin) pinned += unit.pages;
        if (!is_known(unit)) return;
        ++units;
        windows += std::min(unit.windows, 2 * PageHeat::kLastingWindows);
        if (unit.pages > 1 || unit.heat.is_changing()) return;
        ++counts[unit.heat.lasting()];
    });
    pinned_ = std::min(pinned, space.most_hinted);
    const auto usual = static_cast<unsigned>(units == 0 ? 0 : windows / units);
    const TrueHeat heat(counts, usual);
    for (unsigned seen = 0; seen < kHeats; ++seen) {
        const double lasting = variance_of_heat(seen, false, usual);
        lasting_[seen] = warmth_of(heat.mean(seen), {heat.variance(seen), lasting});
        huge_[seen] = warmth_of(seen, {lasting, lasting});
        const double recent = variance_of_heat(seen, true, usual);
        recent_[seen] = warmth_of(seen, {recent, recent});
    }
}

std::optional<std::size_t> Ranking::Pass::kind_of(const HeatMap::Unit& unit) {
    const std::size_t huge = unit.pages > 1 ? 1 : 0;
    const bool is_fast = unit.heat.tier() == ranking_.tiers_.fast;
    const Hint hint = ranking_.space_->hints.empty() ? Hint::kNone : cursor_.of(unit.page, unit.pages);
    if (hint == Hint::kCold) return is_fast ? std::optional(kSaidCold + huge) : std::nullopt;
    if (hint != Hint::kNone) {
        std::uint64_t& left = hint == Hint::kPin ? pinned_left_ : hot_left_;
        if (left >= unit.pages) {
            left -= unit.pages;
            if (hint == Hint::kPin && is_fast) return std::nullopt;
            return kSaidHot + huge;
        }
    }
    // The lasting share of what has cooled down is on its way for a while: nobody should be moved up
    // for it, and of the recent one little is sure.
    const bool cools = !is_fast && unit.heat.recent() < unit.heat.lasting();
    const bool is_recent = cools || unit.heat.is_changing();
    const unsigned heat = cools ? unit.heat.recent() : unit.heat.heat();
    const auto& table = is_recent ? ranking_.recent_ : huge > 0 ? ranking_.huge_ : ranking_.lasting_;
    const Known& known = table[heat];
    variances_ = known.variances;
    return known.heat + (is_recent ? kChanging : 0) + huge * kHuge;
}

Ranking::Known Ranking::warmth_of(double heat, Variances variances) const {
    // Of the steps in which heat is counted, and of the model.
    constexpr double kLeastVariance = 1;
    const double missed = 1 - std::min(heat / PageHeat::kMost, kHighestShare);
    const double slope = space_->weight * std::pow(missed, space_->weight - 1);
    return {static_cast<std::uint8_t>(std::lround(weighted_heat(heat, space_->weight))),
            {.known = std::max(variances.known * slope * slope, kLeastVariance),
             .seen = std::max(variances.seen * slope * slope, kLeastVariance)}};
}

bool is_surely_warmer(std::size_t warm, std::size_t cold, const Sureness& sureness, double certainty) {
    if (is_said(warm) || is_said(cold)) return rank_of(warm) > rank_of(cold);
    // The extremes of recent shares are those of chance, and nothing corrects them. Neither does it those of
    // huge pages, which are few, and whose windows depend on each other where the first touches count. Then
    // nothing counts but what was seen, and it has to be surer.
    constexpr double kDoubt = 4.5 / 3.5;
    const Variances of_warm = sureness.of(warm);
    const Variances of_cold = sureness.of(cold);
    const double variance = is_corrected(warm) && is_corrected(cold)
                                ? of_warm.known + of_cold.known
                                : kDoubt * kDoubt * (of_warm.seen + of_cold.seen);
    const double difference = double(heat_of(warm)) - double(heat_of(cold));
    return difference > 0 && difference * difference >= certainty * certainty * variance;
}

}  // namespace memtide::agent::ranking

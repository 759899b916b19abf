#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/hints/hint_ranges.h"
#include "tiering-agent/policy/exchange.h"
#include "tiering-agent/policy/heat_map.h"

// How units are ranked for an exchange between two tiers: plan_exchange() alone needs it.
namespace memtide::agent::ranking {

// Units that are alike: as warm (the heat is weighted), known as well, and as large; or of which their
// process says the same.
constexpr std::size_t kHeats = PageHeat::kMost + 1;
constexpr std::size_t kChanging = kHeats;
constexpr std::size_t kHuge = 2 * kHeats;
constexpr std::size_t kSeen = 4 * kHeats;  // from here on: what was said
constexpr std::size_t kSaidCold = kSeen;   // and behind it the huge ones
constexpr std::size_t kSaidHot = kSeen + 2;
constexpr std::size_t kClasses = kSeen + 4;
using Counts = std::array<std::uint64_t, kClasses>;  // pages

constexpr bool is_said(std::size_t kind) { return kind >= kSeen; }
constexpr unsigned heat_of(std::size_t kind) {
    if (is_said(kind)) return kind >= kSaidHot ? PageHeat::kMost : 0;
    return static_cast<unsigned>(kind % kHeats);
}
constexpr std::uint64_t unit_of(std::size_t kind) {
    const bool is_huge = is_said(kind) ? (kind - kSeen) % 2 == 1 : (kind & kHuge) != 0;
    return is_huge ? kPagesPerHuge : 1;
}
// Whether what is known of all others corrects its heat.
constexpr bool is_corrected(std::size_t kind) { return kind < kHeats; }
// What is said to be cold is below all that was seen, what is said to be hot above.
constexpr int rank_of(unsigned heat, bool is_said) {
    if (!is_said) return static_cast<int>(heat);
    return heat == 0 ? -1 : int{PageHeat::kMost} + 1;
}
constexpr int rank_of(std::size_t kind) { return rank_of(heat_of(kind), is_said(kind)); }
inline int rank_of(const Move& move) { return rank_of(move.heat, move.hinted); }

// All classes; those of one rank in the order of their numbers.
const std::vector<std::size_t>& classes_by_rank(bool coldest_first);

// Seen in windows enough to be judged.
inline bool is_known(const HeatMap::Unit& unit) { return unit.windows >= kLeastWindows; }

// Of the heat of a unit, of which all others are known, too; and from what was seen of it alone.
struct Variances {
    double known = 0;
    double seen = 0;
};

// How the units of one space are ranked.
class Ranking {
  public:
    // `space` must outlive it.
    Ranking(const Space& space, const Pair& tiers);
    // Whether it is in one of the two tiers.
    [[nodiscard]] bool takes_part(const HeatMap::Unit& unit) const {
        return unit.heat.tier() == tiers_.fast || unit.heat.tier() == tiers_.slow;
    }

    // Goes through the space once. It wants to see every unit that takes part, by ascending address.
    class Pass {
      public:
        explicit Pass(const Ranking& ranking)
            : ranking_(ranking),
              cursor_(ranking.space_->hints),
              pinned_left_(ranking.pinned_),
              hot_left_(ranking.space_->most_hinted - ranking.pinned_) {}
        // Nothing: its process wants it where it is.
        [[nodiscard]] std::optional<std::size_t> kind_of(const HeatMap::Unit& unit);
        // Of the heat of the unit asked for last.
        [[nodiscard]] Variances variances() const { return variances_; }

      private:
        const Ranking& ranking_;
        HintCursor cursor_;
        std::uint64_t pinned_left_;
        std::uint64_t hot_left_;
        Variances variances_;
    };

  private:
    struct Known {
        std::uint8_t heat = 0;
        Variances variances;
    };
    // As weighted_heat().
    [[nodiscard]] Known warmth_of(double heat, Variances variances) const;

    const Space* space_;
    Pair tiers_;
    std::array<Known, kHeats> lasting_{};  // of small pages
    std::array<Known, kHeats> huge_{};
    std::array<Known, kHeats> recent_{};
    std::uint64_t pinned_ = 0;  // pages whose pin counts
};

// How well the heat of the units of a class is known, on the average.
struct Sureness {
    std::array<Variances, kSeen> sums{};
    std::array<std::uint64_t, kSeen> units{};

    void add(std::size_t kind, Variances of) {
        sums[kind].known += of.known;
        sums[kind].seen += of.seen;
        ++units[kind];
    }
    [[nodiscard]] Variances of(std::size_t kind) const {
        const auto count = double(std::max<std::uint64_t>(units[kind], 1));
        return {.known = sums[kind].known / count, .seen = sums[kind].seen / count};
    }
};

// Whether the difference is more than chance makes it, by `certainty` standard deviations.
bool is_surely_warmer(std::size_t warm, std::size_t cold, const Sureness& sureness, double certainty);

}  // namespace memtide::agent::ranking

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/hints/hint_ranges.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/policy/move_log.h"

// Which pages should change places between two neighbouring tiers. Pure functions: the same in the agent, in
// its dry run and in the simulator of the tests.
namespace memtide::agent {

// One address space that takes part.
struct Space {
    std::uint64_t id = 0;
    const HeatMap* heat = nullptr;
    double weight = 1;                         // a touch of it counts so much
    std::uint64_t least_fast = 0;              // pages that it keeps in the faster tier whatever others do
    std::optional<std::uint64_t> most_fast{};  // pages of the faster tier that it may have
    // What it says of its own memory. For so many pages of the faster tier, pinned ones before hot ones, its
    // word counts more than what is seen of them; beyond that they are as the others.
    std::span<const HintRange> hints{};
    std::uint64_t most_hinted = UINT64_MAX;
};

// The two tiers; room in pages of 4 KiB.
struct Pair {
    std::uint8_t fast = 0;
    std::uint8_t slow = 1;
    std::uint64_t fast_free = 0;
    std::uint64_t slow_free = 0;
    std::uint64_t reserve = 0;  // of the faster tier, to be left free for new memory
};

struct ExchangeOptions {
    std::uint64_t most_pages = UINT64_MAX;  // that move in one plan, both directions together
    // How many standard deviations a page must be warmer than the one whose place it takes. Below that the
    // difference may be chance, and moving them is work for nothing.
    double certainty = 3.5;
    // What is touched in a smaller share of windows than this is not worth its move; of PageHeat::kMost.
    unsigned least_heat = 8;
    // Of all touches, that should fall on the faster tier at most (Spread). While more do, the warmest go
    // down, for they are the fewest; hints are obeyed first.
    double most_fast = 1;
};

// Units that were observed less often are too new to be judged.
inline constexpr unsigned kLeastWindows = 3;

// How warm a unit is among those of other spaces: its heat if it were touched `weight` times as often.
double weighted_heat(double heat, double weight);

struct Move {
    std::uint64_t space = 0;
    std::uint64_t page = 0;
    std::uint32_t pages = 1;
    std::uint8_t heat = 0;
    bool hinted = false;  // the heat is what its process says: 0 or PageHeat::kMost
};

// Of 4 KiB, all together.
std::uint64_t pages_of(std::span<const Move> moves);

struct ExchangePlan {
    // Coldest first, and hottest first. Room for a promotion is made by the demotions before it: whoever
    // carries it out keeps the two in step.
    std::vector<Move> demotions;
    std::vector<Move> promotions;
    std::uint64_t demoted_pages = 0;
    std::uint64_t promoted_pages = 0;
    // The differences between pages are those of chance: there is nothing to be gained.
    bool is_even = false;
    // Share of all touches that fall on the faster tier, as far as the heat tells, before and after.
    double hit_before = 1;
    double hit_after = 1;

    [[nodiscard]] bool is_empty() const { return demotions.empty() && promotions.empty(); }
};

// Units that `log` has moved lately stay where they are; it may be null.
ExchangePlan plan_exchange(std::span<const Space> spaces, const Pair& tiers, const ExchangeOptions& options,
                           const MoveLog* log = nullptr);

}  // namespace memtide::agent

// What processes say of their memory, in plans.
#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "tiering-agent/policy/exchange.h"

namespace memtide::agent {
namespace {

constexpr std::uint64_t kFirst = 512 * 100;
constexpr std::uint8_t kUp = 0;
constexpr std::uint8_t kDown = 1;

// Pages of which each is touched in every `nth` window; 0: never.
struct Stretch {
    std::size_t pages;
    std::uint8_t tier;
    unsigned nth;
};

HeatMap pages_of(std::initializer_list<Stretch> stretches, unsigned windows = 100) {
    HeatMap map;
    for (unsigned window = 0; window < windows; ++window) {
        std::vector<PageSeen> seen;
        for (const Stretch& stretch : stretches)
            for (std::size_t i = 0; i < stretch.pages; ++i)
                seen.push_back(
                    {.tier = stretch.tier, .touched = stretch.nth != 0 && (window + i) % stretch.nth == 0});
        map.observe(kFirst, seen);
    }
    return map;
}

HintRange said(std::uint64_t first, std::uint64_t end, Hint hint) {
    return {kFirst + first, kFirst + end, hint};
}

ExchangePlan plan_with(const HeatMap& map, const std::vector<HintRange>& hints, Pair pair = {},
                       std::uint64_t most_hinted = 1'000, std::optional<std::uint64_t> most_fast = {}) {
    const Space space{
        .id = 7, .heat = &map, .most_fast = most_fast, .hints = hints, .most_hinted = most_hinted};
    if (pair.slow_free == 0) pair.slow_free = 1'000'000;
    return plan_exchange(std::span(&space, 1), pair, {});
}

bool all_between(const std::vector<Move>& moves, std::uint64_t first, std::uint64_t end) {
    return std::ranges::all_of(
        moves, [&](const Move& move) { return move.page >= kFirst + first && move.page < kFirst + end; });
}

TEST(HintedExchange, WhatIsSaidToBeHotComesUpThoughNobodyTouchesIt) {
    const HeatMap map = pages_of({{100, kUp, 20}, {40, kDown, 0}, {300, kDown, 0}});
    const ExchangePlan plan = plan_with(map, {said(100, 140, Hint::kHot)});
    EXPECT_EQ(plan.promoted_pages, 40U);
    EXPECT_TRUE(all_between(plan.promotions, 100, 140));
    EXPECT_EQ(plan.demoted_pages, 40U);
    EXPECT_TRUE(plan_with(map, {}).is_empty());
}

TEST(HintedExchange, EvenWhereNothingElseIsToBeGained) {
    const HeatMap map = pages_of({{100, kUp, 1}, {400, kDown, 1}});
    ASSERT_TRUE(plan_with(map, {}).is_even);
    const ExchangePlan hot = plan_with(map, {said(200, 230, Hint::kHot)});
    EXPECT_EQ(hot.promoted_pages, 30U);
    EXPECT_TRUE(all_between(hot.promotions, 200, 230));
    const ExchangePlan cold = plan_with(map, {said(10, 30, Hint::kCold)});
    EXPECT_EQ(cold.demoted_pages, 20U);
    EXPECT_TRUE(all_between(cold.demotions, 10, 30));
    EXPECT_EQ(cold.promoted_pages, 20U) << "their places are not left free";
}

TEST(HintedExchange, AtOnceAndNotAfterWindows) {
    const HeatMap map = pages_of({{100, kUp, 1}, {40, kDown, 0}}, 1);
    EXPECT_EQ(plan_with(map, {said(100, 140, Hint::kHot)}, {.fast_free = 30}).promoted_pages, 30U);
}

TEST(HintedExchange, WhatIsSaidToBeColdGoesFirstAndDoesNotComeBack) {
    const HeatMap map = pages_of({{50, kUp, 1}, {50, kUp, 0}, {50, kDown, 1}, {50, kDown, 4}});
    const ExchangePlan plan = plan_with(map, {said(0, 50, Hint::kCold), said(100, 150, Hint::kCold)});
    // Those that are touched now and then come up, those that are touched always and said to be cold do not.
    EXPECT_EQ(plan.promoted_pages, 50U);
    EXPECT_TRUE(all_between(plan.promotions, 150, 200));
    EXPECT_EQ(plan.demoted_pages, 50U);
    EXPECT_TRUE(all_between(plan.demotions, 0, 50));
}

TEST(HintedExchange, PinnedPagesStayWhateverIsHot) {
    const HeatMap map = pages_of({{60, kUp, 0}, {40, kUp, 0}, {90, kDown, 1}});
    const ExchangePlan plan = plan_with(map, {said(0, 60, Hint::kPin)});
    EXPECT_EQ(plan.demoted_pages, 40U);
    EXPECT_TRUE(all_between(plan.demotions, 60, 100));
    EXPECT_EQ(plan_with(map, {said(0, 60, Hint::kPin)}, {.fast_free = 0, .reserve = 80}).demoted_pages, 40U)
        << "nor for the reserve";
}

TEST(HintedExchange, APinBringsUpToo) {
    const HeatMap map = pages_of({{100, kUp, 3}, {40, kDown, 0}});
    EXPECT_EQ(plan_with(map, {said(100, 140, Hint::kPin)}).promoted_pages, 40U);
}

TEST(HintedExchange, BeyondItsShareAWordCountsForNothing) {
    const HeatMap map = pages_of({{100, kUp, 20}, {80, kDown, 0}});
    const std::vector<HintRange> hints{said(100, 180, Hint::kHot)};
    EXPECT_EQ(plan_with(map, hints, {}, 30).promoted_pages, 30U);
    EXPECT_EQ(plan_with(map, hints, {}, 0).promoted_pages, 0U);
    // Pins come before, wherever they lie.
    const std::vector<HintRange> both{said(100, 140, Hint::kHot), said(140, 180, Hint::kPin)};
    const ExchangePlan plan = plan_with(map, both, {}, 50);
    EXPECT_EQ(plan.promoted_pages, 50U);
    EXPECT_EQ(
        std::ranges::count_if(plan.promotions, [](const Move& move) { return move.page >= kFirst + 140; }),
        40);
}

TEST(HintedExchange, WhoHasItsShareByHintsTakesNothingFromOthers) {
    const HeatMap loud = pages_of({{50, kUp, 0}, {200, kDown, 0}});
    const HeatMap quiet = pages_of({{50, kUp, 3}, {200, kDown, 0}});
    const std::vector<HintRange> everything{said(0, 250, Hint::kPin)};
    const std::vector<Space> spaces{{.id = 1, .heat = &loud, .hints = everything, .most_hinted = 50},
                                    {.id = 2, .heat = &quiet}};
    EXPECT_TRUE(plan_exchange(spaces, {.slow_free = 1'000}, {}).is_empty());
}

TEST(HintedExchange, AtItsLimitATargetExchangesWithItselfAsItSays) {
    const HeatMap map = pages_of({{50, kUp, 2}, {50, kUp, 1}, {60, kDown, 0}});
    const ExchangePlan plan = plan_with(map, {said(100, 160, Hint::kHot)}, {}, 30, 100);
    EXPECT_EQ(plan.promoted_pages, 30U);
    EXPECT_EQ(plan.demoted_pages, 30U);
    EXPECT_TRUE(all_between(plan.demotions, 0, 50));
    // Above it, what is pinned and may be stays.
    const ExchangePlan above = plan_with(map, {said(0, 50, Hint::kPin)}, {}, 60, 60);
    EXPECT_EQ(above.demoted_pages, 40U);
    EXPECT_TRUE(all_between(above.demotions, 50, 100));
}

TEST(HintedExchange, WhatWasMovedRestsAlsoWithHints) {
    const HeatMap map = pages_of({{100, kUp, 20}, {40, kDown, 0}});
    const std::vector<HintRange> hints{said(100, 140, Hint::kHot)};
    const Space space{.id = 7, .heat = &map, .hints = hints};
    const auto now = MoveLog::Time(std::chrono::hours(1));
    MoveLog log;
    log.add_failure(7, kFirst + 100, now);
    log.set_rest(std::chrono::seconds(2), now);
    EXPECT_EQ(plan_exchange(std::span(&space, 1), {.slow_free = 1'000}, {}, &log).promoted_pages, 39U);
}

TEST(HintedExchange, AHugePageOfWhichAPartIsHotIsHot) {
    HeatMap map;
    std::vector<PageSeen> seen(512, {.tier = kDown, .touched = false, .huge = true});
    seen.resize(1024, {.tier = kUp, .touched = false, .huge = true});
    for (int i = 0; i < 50; ++i) map.observe(kFirst, seen);
    const ExchangePlan plan = plan_with(map, {said(5, 6, Hint::kHot)});
    EXPECT_EQ(plan.promoted_pages, 512U);
    EXPECT_EQ(plan.demoted_pages, 512U);
    EXPECT_TRUE(plan_with(map, {said(0, 511, Hint::kCold)}).is_empty());
}

}  // namespace
}  // namespace memtide::agent

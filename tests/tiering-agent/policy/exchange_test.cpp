#include "tiering-agent/policy/exchange.h"

#include <algorithm>
#include <chrono>
#include <random>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

constexpr std::uint64_t kBase = 512 * 100;
constexpr std::uint8_t kFast = 0;
constexpr std::uint8_t kSlow = 1;

// Pages of which each is touched in every `nth` window; 0: never.
struct Part {
    std::size_t pages;
    std::uint8_t tier;
    unsigned nth;
};

HeatMap map_of(std::initializer_list<Part> parts, unsigned windows = 100) {
    HeatMap map;
    for (unsigned window = 0; window < windows; ++window) {
        std::vector<PageSeen> seen;
        for (const Part& part : parts)
            for (std::size_t i = 0; i < part.pages; ++i)
                seen.push_back({.tier = part.tier, .touched = part.nth != 0 && (window + i) % part.nth == 0});
        map.observe(kBase, seen);
    }
    return map;
}

ExchangePlan plan_of(const HeatMap& map, Pair pair = {}, ExchangeOptions options = {}) {
    const Space space{.id = 7, .heat = &map};
    if (pair.slow_free == 0) pair.slow_free = 1'000'000;
    return plan_exchange(std::span(&space, 1), pair, options);
}

TEST(Exchange, HotPagesTakeThePlacesOfColdOnes) {
    const HeatMap map = map_of({{100, kFast, 0}, {50, kFast, 1}, {40, kSlow, 1}, {300, kSlow, 0}});
    const ExchangePlan plan = plan_of(map);
    EXPECT_EQ(plan.promoted_pages, 40U);
    EXPECT_EQ(plan.demoted_pages, 40U);
    for (const Move& move : plan.promotions) {
        EXPECT_EQ(move.space, 7U);
        EXPECT_GE(move.page, kBase + 150);
        EXPECT_LT(move.page, kBase + 190);
    }
    for (const Move& move : plan.demotions) EXPECT_LT(move.page, kBase + 100);
    EXPECT_LT(plan.hit_before, 0.6);
    EXPECT_GT(plan.hit_after, 0.95);
}

TEST(Exchange, WhatIsInItsPlaceStaysThere) {
    const ExchangePlan plan = plan_of(map_of({{100, kFast, 1}, {300, kSlow, 20}}));
    EXPECT_TRUE(plan.is_empty());
    EXPECT_FALSE(plan.is_even);
}

TEST(Exchange, FreeRoomIsFilledWithTheWarmestAndTheReserveIsLeft) {
    const ExchangePlan plan =
        plan_of(map_of({{100, kFast, 1}, {60, kSlow, 2}, {60, kSlow, 1}, {90, kSlow, 0}}),
                {.fast_free = 90, .reserve = 20});
    EXPECT_EQ(plan.promoted_pages, 70U);
    EXPECT_EQ(plan.demoted_pages, 0U);
    for (std::size_t i = 0; i < 60; ++i) EXPECT_GE(plan.promotions[i].page, kBase + 160) << "hottest first";
    EXPECT_EQ(plan_of(map_of({{100, kFast, 1}, {60, kSlow, 0}}), {.fast_free = 90}).promoted_pages, 0U)
        << "what is never touched is not worth its move";
}

TEST(Exchange, AReserveThatIsUsedUpIsMadeAgainByTheColdest) {
    const ExchangePlan plan =
        plan_of(map_of({{100, kFast, 1}, {50, kFast, 0}, {60, kSlow, 30}}), {.fast_free = 5, .reserve = 30});
    EXPECT_EQ(plan.promoted_pages, 0U);
    ASSERT_EQ(plan.demoted_pages, 25U);
    for (const Move& move : plan.demotions) EXPECT_GE(move.page, kBase + 100);
}

TEST(Exchange, NothingMovesIntoATierWithoutRoom) {
    const HeatMap map = map_of({{100, kFast, 0}, {60, kSlow, 30}});
    const Space space{.id = 1, .heat = &map};
    const Pair pair{.fast_free = 0, .slow_free = 10, .reserve = 30};
    EXPECT_LE(plan_exchange(std::span(&space, 1), pair, {}).demoted_pages, 10U);
}

TEST(Exchange, PlansNoMoreThanItMay) {
    const HeatMap map = map_of({{100, kFast, 0}, {100, kSlow, 1}});
    const ExchangePlan plan = plan_of(map, {}, {.most_pages = 30});
    EXPECT_EQ(plan.promoted_pages, 15U);
    EXPECT_EQ(plan.demoted_pages, 15U);
}

TEST(Exchange, WhatIsTooNewIsNotJudged) {
    EXPECT_TRUE(plan_of(map_of({{100, kFast, 0}, {40, kSlow, 1}}, 2)).is_empty());
}

TEST(Exchange, WhatWasJustMovedRests) {
    const HeatMap map = map_of({{100, kFast, 0}, {40, kSlow, 1}});
    const Space space{.id = 7, .heat = &map};
    const auto now = MoveLog::Time(std::chrono::hours(1));
    MoveLog log;
    log.add(7, kBase + 100, 1, kSlow, now);
    log.add_failure(7, kBase + 101, now);
    log.set_rest(std::chrono::seconds(2), now + std::chrono::seconds(1));
    const Pair pair{.slow_free = 1'000};
    EXPECT_EQ(plan_exchange(std::span(&space, 1), pair, {}, &log).promoted_pages, 38U);
    log.set_rest(std::chrono::seconds(2), now + std::chrono::seconds(3));
    EXPECT_EQ(plan_exchange(std::span(&space, 1), pair, {}, &log).promoted_pages, 39U);
    log.expire(now + MoveLog::kMemory + std::chrono::seconds(1));
    EXPECT_EQ(plan_exchange(std::span(&space, 1), pair, {}, &log).promoted_pages, 40U);
}

TEST(Exchange, WeightsDecideBetweenSpaces) {
    const HeatMap light = map_of({{50, kFast, 0}, {50, kSlow, 2}});
    const HeatMap heavy = map_of({{50, kFast, 0}, {50, kSlow, 2}});
    const std::vector<Space> spaces{{.id = 1, .heat = &light, .weight = 0.3},
                                    {.id = 2, .heat = &heavy, .weight = 3}};
    // Half of the pages were not touched in the last window, and are not so sure.
    const ExchangePlan plan = plan_exchange(spaces, {.slow_free = 1'000}, {.most_pages = 40});
    EXPECT_EQ(plan.promoted_pages, 20U);
    for (const Move& move : plan.promotions) EXPECT_EQ(move.space, 2U);
}

// Pages of which each alone is not surely warmer: all together they are.
TEST(Exchange, WeightsCountWhereLoadsAreAlike) {
    std::mt19937 random(3);
    HeatMap light;
    HeatMap heavy;
    for (int window = 0; window < 100; ++window)
        for (HeatMap* const map : {&light, &heavy}) {
            std::vector<PageSeen> seen;
            for (int i = 0; i < 5'000; ++i)
                seen.push_back(
                    {.tier = i < 2'500 ? kFast : kSlow, .touched = std::uint8_t{random() % 5 == 0}});
            map->observe(kBase, seen);
        }
    std::vector<Space> spaces{{.id = 1, .heat = &light}, {.id = 2, .heat = &heavy, .weight = 3}};
    const ExchangePlan plan = plan_exchange(spaces, {.slow_free = 10'000}, {});
    // What was not touched in the last windows waits for the next.
    EXPECT_GT(plan.promoted_pages, 1'000U);
    const auto is_heavy = [](const Move& move) { return move.space == 2; };
    EXPECT_GE(std::ranges::count_if(plan.promotions, is_heavy) + 5, std::ssize(plan.promotions));
    EXPECT_LE(std::ranges::count_if(plan.demotions, is_heavy), 5);
    spaces[1].weight = 1;
    EXPECT_TRUE(plan_exchange(spaces, {.slow_free = 10'000}, {}).is_empty());
}

TEST(Exchange, AShareOfTheFasterTierIsALimitBothWays) {
    const HeatMap cold = map_of({{80, kFast, 0}, {20, kSlow, 0}});
    const HeatMap hot = map_of({{20, kFast, 1}, {80, kSlow, 1}});
    std::vector<Space> spaces{{.id = 1, .heat = &cold, .least_fast = 80}, {.id = 2, .heat = &hot}};
    EXPECT_TRUE(plan_exchange(spaces, {.slow_free = 1'000}, {}).is_empty()) << "it keeps what is its own";
    spaces = {{.id = 1, .heat = &cold, .least_fast = 70}, {.id = 2, .heat = &hot}};
    EXPECT_EQ(plan_exchange(spaces, {.slow_free = 1'000}, {}).demoted_pages, 10U) << "and no more than that";
    spaces = {{.id = 1, .heat = &cold}, {.id = 2, .heat = &hot, .most_fast = 20}};
    EXPECT_EQ(plan_exchange(spaces, {.slow_free = 1'000}, {}).promoted_pages, 0U)
        << "it has what it may have";
    spaces = {{.id = 1, .heat = &cold}, {.id = 2, .heat = &hot, .most_fast = 30}};
    EXPECT_EQ(plan_exchange(spaces, {.fast_free = 500, .slow_free = 1'000}, {}).promoted_pages, 10U)
        << "no more than it may have, however much is free";
    spaces = {{.id = 2, .heat = &hot, .most_fast = 15}};
    const ExchangePlan plan = plan_exchange(spaces, {.slow_free = 1'000}, {});
    EXPECT_EQ(plan.demoted_pages, 5U) << "it has more than it may have";
    EXPECT_EQ(plan.promoted_pages, 0U);
}

TEST(Exchange, WhoHasAllThatItMayHaveExchangesWithItself) {
    const HeatMap map = map_of({{50, kFast, 0}, {40, kSlow, 1}, {100, kSlow, 0}});
    const HeatMap other = map_of({{90, kFast, 0}});
    const std::vector<Space> spaces{{.id = 1, .heat = &map, .most_fast = 50}, {.id = 2, .heat = &other}};
    const ExchangePlan plan = plan_exchange(spaces, {.slow_free = 1'000}, {});
    EXPECT_EQ(plan.promoted_pages, 40U);
    EXPECT_EQ(plan.demoted_pages, 40U);
    for (const Move& move : plan.demotions) EXPECT_EQ(move.space, 1U);
}

TEST(MoveLog, CountsWhatWasUndoneWithinAMinuteAsWasted) {
    MoveLog log;
    const auto start = MoveLog::Time(std::chrono::hours(1));
    log.add(1, 10, 1, kFast, start);
    log.add(1, 11, 1, kFast, start);
    log.add(1, 10, 1, kSlow, start + std::chrono::seconds(30));
    EXPECT_EQ(log.wasted_pages(), 1U);
    log.add(1, 11, 1, kSlow, start + std::chrono::seconds(70));
    EXPECT_EQ(log.wasted_pages(), 1U) << "a minute later it is another time";
    EXPECT_EQ(log.moved_pages(), 4U);
}

// What was undone later than that may be a load that has changed.
TEST(MoveLog, ToAndFroIsWhatWasUndoneAtOnce) {
    MoveLog log;
    const auto start = MoveLog::Time(std::chrono::hours(1));
    for (const std::uint64_t page : {10, 11, 12}) log.add(1, page, 1, kFast, start);
    EXPECT_EQ(log.to_and_fro_share(), 0);
    log.add(1, 10, 1, kSlow, start + std::chrono::seconds(5));
    EXPECT_NEAR(log.to_and_fro_share(), 1 / 4.0, 0.01);
    log.add(1, 11, 1, kSlow, start + std::chrono::seconds(15));
    EXPECT_NEAR(log.to_and_fro_share(), 1 / 5.0, 0.01) << "later";
    log.set_rest(std::chrono::seconds(6), start + std::chrono::seconds(20));
    log.add(1, 12, 1, kSlow, start + std::chrono::seconds(20));
    EXPECT_NEAR(log.to_and_fro_share(), 2 / 6.0, 0.01) << "where units rest longer, that is soon";
    log.expire(start + std::chrono::seconds(200));
    EXPECT_EQ(log.to_and_fro_share(), 0);
}

TEST(MoveLog, RemembersNoMoreThanItMay) {
    MoveLog log;
    const auto now = MoveLog::Time(std::chrono::hours(1));
    log.set_rest(std::chrono::seconds(5), now);
    for (std::uint64_t page = 0; page < MoveLog::kMostUnits + 10; ++page) log.add(1, page, 1, kFast, now);
    EXPECT_FALSE(log.rests(1, 9));
    EXPECT_TRUE(log.rests(1, 10));
    EXPECT_EQ(log.moved_pages(), MoveLog::kMostUnits + 10);
}

TEST(MoveLog, ForgetsASpaceThatIsGone) {
    MoveLog log;
    const auto now = MoveLog::Time(std::chrono::hours(1));
    log.add(1, 10, 1, kFast, now);
    log.add(2, 10, 1, kFast, now);
    log.set_rest(std::chrono::seconds(5), now);
    log.forget(1);
    EXPECT_FALSE(log.rests(1, 10));
    EXPECT_TRUE(log.rests(2, 10));
}

TEST(MoveLog, TellsWhatBecameOfAUnit) {
    MoveLog log;
    const MoveLog::Time now{std::chrono::hours(1)};
    EXPECT_FALSE(log.last(7, kBase));
    log.add(7, kBase, 1, kFast, now);
    log.add_failure(7, kBase + 1, now, 16);
    ASSERT_TRUE(log.last(7, kBase));
    EXPECT_EQ(log.last(7, kBase)->to, kFast);
    EXPECT_EQ(log.last(7, kBase)->at, now);
    EXPECT_FALSE(log.last(7, kBase)->failed);
    EXPECT_TRUE(log.last(7, kBase + 1)->failed);
    EXPECT_EQ(log.last(7, kBase + 1)->error, 16);
    log.add(7, kBase, 1, kSlow, now);
    EXPECT_TRUE(log.last(7, kBase)->undid);
    log.expire(now + 2 * MoveLog::kMemory);
    EXPECT_FALSE(log.last(7, kBase));
}

}  // namespace
}  // namespace memtide::agent

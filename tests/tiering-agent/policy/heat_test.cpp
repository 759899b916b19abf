#include <random>

#include <gtest/gtest.h>

#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {
namespace {

constexpr std::uint64_t kBase = 512 * 100;
std::uint32_t draw(std::mt19937& random) { return static_cast<std::uint32_t>(random()); }

constexpr PageSeen kCold{.tier = 1, .touched = false};
constexpr PageSeen kHot{.tier = 1, .touched = true};

TEST(PageHeat, AverageIsTheShareOfWindowsThatTouchIt) {
    std::mt19937 random(1);
    for (const double share : {0.0, 0.01, 0.1, 0.5, 0.9, 1.0}) {
        double sum = 0;
        constexpr int kUnits = 2'000;
        for (int unit = 0; unit < kUnits; ++unit) {
            PageHeat heat;
            for (unsigned window = 0; window < 100; ++window)
                heat.observe(std::bernoulli_distribution(share)(random), window, draw(random));
            sum += heat.lasting();
        }
        EXPECT_NEAR(sum / kUnits / PageHeat::kMost, share, 0.01) << "small shares are not rounded away";
    }
}

TEST(PageHeat, AChangeIsNoticedInAFewWindowsAndASteadyLoadIsNotTakenForOne) {
    std::mt19937 random(1);
    PageHeat heat;
    for (unsigned window = 0; window < 100; ++window) heat.observe(false, window, draw(random));
    EXPECT_FALSE(heat.is_changing());
    for (unsigned window = 0; window < 3; ++window) heat.observe(true, 100 + window, draw(random));
    EXPECT_TRUE(heat.is_changing());
    EXPECT_GT(heat.heat(), PageHeat::kMost / 2);
    for (unsigned window = 0; window < 200; ++window) heat.observe(true, 103 + window, draw(random));
    EXPECT_FALSE(heat.is_changing());
    EXPECT_GT(heat.heat(), 250U);
}

TEST(PageHeat, ChanceIsLessTheMoreWindowsThereWere) {
    EXPECT_GT(variance_of_heat(100, false, 4), variance_of_heat(100, false, 64));
    EXPECT_GT(variance_of_heat(100, true, 64), variance_of_heat(100, false, 64));
    EXPECT_GT(variance_of_heat(0, false, 64), 0) << "never touched is not never to be touched";
}

std::vector<HeatMap::Unit> units_of(const HeatMap& map) {
    std::vector<HeatMap::Unit> units;
    map.for_each([&](const HeatMap::Unit& unit) { units.push_back(unit); });
    return units;
}

TEST(HeatMap, KnowsPagesWhereTheyAreAndHolesCostNothing) {
    HeatMap map;
    const std::size_t empty = map.memory();
    map.observe(kBase, std::vector<PageSeen>(512 * 1000));
    EXPECT_EQ(map.memory(), empty);
    map.observe(kBase + 3, std::vector{kHot, kCold});
    const auto units = units_of(map);
    ASSERT_EQ(units.size(), 2U);
    EXPECT_EQ(units[0].page, kBase + 3);
    EXPECT_GT(units[0].heat.heat(), units[1].heat.heat());
    EXPECT_LT(map.memory(), empty + 2'000);
    map.forget(kBase, kBase + 4);
    EXPECT_EQ(units_of(map).size(), 1U);
    map.forget(0, UINT64_MAX);
    EXPECT_TRUE(units_of(map).empty());
}

TEST(HeatMap, AHugePageIsOneUnitAndItsPartsAreAsWarmWhenItIsSplit) {
    HeatMap map;
    PageSeen huge = kHot;
    huge.huge = true;
    for (int window = 0; window < 40; ++window) map.observe(kBase, std::vector(512, huge));
    ASSERT_EQ(units_of(map).size(), 1U);
    EXPECT_EQ(units_of(map)[0].pages, 512U);
    const unsigned warm = units_of(map)[0].heat.heat();
    map.observe(kBase, std::vector(512, kHot));
    ASSERT_EQ(units_of(map).size(), 512U);
    EXPECT_GE(units_of(map)[100].heat.heat() + 10, warm);
    EXPECT_EQ(units_of(map)[100].windows, 1U);
    map.observe(kBase, std::vector(512, huge));
    EXPECT_EQ(units_of(map).size(), 1U);
}

// What was the heat of all of it together tells nothing of each part.
TEST(HeatMap, ThePartsOfAHugePageThatWasSplitAreJudgedAnew) {
    HeatMap map;
    PageSeen huge = kHot;
    huge.huge = true;
    for (int window = 0; window < 40; ++window) map.observe(kBase, std::vector(512, huge));
    std::vector<PageSeen> parts(512, kCold);
    parts[7] = kHot;
    for (int window = 0; window < 3; ++window) map.observe(kBase, parts);
    EXPECT_GT(units_of(map)[7].heat.heat(), 250U);
    EXPECT_LT(units_of(map)[8].heat.heat(), 5U);
}

TEST(HeatMap, BegunAnewTheNextWindowsDecide) {
    HeatMap map;
    for (int window = 0; window < 40; ++window) map.observe(kBase, std::vector(512, kHot));
    map.restart();
    EXPECT_EQ(units_of(map)[7].windows, 0U);
    EXPECT_EQ(units_of(map)[7].heat.tier(), kHot.tier);
    map.observe(kBase, std::vector(512, kCold));
    EXPECT_EQ(units_of(map)[7].windows, 1U);
    EXPECT_EQ(units_of(map)[7].heat.lasting(), 0U);
}

TEST(HeatMap, APageThatWentAwayAndCameBackIsANewOne) {
    HeatMap map;
    for (int window = 0; window < 40; ++window) map.observe(kBase, std::vector(8, kHot));
    map.observe(kBase, std::vector(8, PageSeen{}));
    EXPECT_TRUE(units_of(map).empty());
    map.observe(kBase, std::vector(8, kCold));
    EXPECT_EQ(units_of(map)[0].heat.lasting(), 0U);
}

// As though they had been looked at one after the other.
TEST(HeatMap, SeveralWindowsAtOnceAreAsManySingleOnes) {
    std::mt19937 random(2);
    HeatMap at_once;
    HeatMap one_by_one;
    constexpr unsigned kWindows = 4;
    for (int look = 0; look < 200; ++look) {
        std::vector<PageSeen> seen(512, PageSeen{.tier = 1, .windows = kWindows});
        for (PageSeen& page : seen)
            page.touched = static_cast<std::uint8_t>(std::binomial_distribution(kWindows, 0.25)(random));
        at_once.observe(kBase, seen);
        for (unsigned window = 0; window < kWindows; ++window) {
            std::vector<PageSeen> single(512, kCold);
            for (PageSeen& page : single) page.touched = std::bernoulli_distribution(0.25)(random);
            one_by_one.observe(kBase, single);
        }
    }
    const auto sums = [](const HeatMap& map) {
        std::pair<double, double> sum{};
        map.for_each([&](const HeatMap::Unit& unit) {
            sum.first += unit.heat.lasting() / 512.0;
            sum.second += unit.heat.recent() / 512.0;
        });
        return sum;
    };
    EXPECT_NEAR(sums(at_once).first, sums(one_by_one).first, 3);
    EXPECT_NEAR(sums(at_once).second, sums(one_by_one).second, 8) << "the last window is any of them";
    EXPECT_EQ(at_once.at(kBase).windows, one_by_one.at(kBase).windows);
}

TEST(HeatMap, AWindowThatTellsOnlyPlacesLeavesTheHeat) {
    HeatMap map;
    const std::vector<PageSeen> hot(512, kHot);
    for (int i = 0; i < 10; ++i) map.observe(kBase, hot);
    const auto before = map.at(kBase);
    map.observe(kBase, std::vector<PageSeen>(512, PageSeen{.tier = 0, .windows = 0}));
    EXPECT_EQ(map.at(kBase).windows, before.windows);
    EXPECT_EQ(map.at(kBase).heat.lasting(), before.heat.lasting());
    EXPECT_EQ(map.at(kBase).heat.tier(), 0);
}

// A look tells of the pages of a group in pieces where there are holes between them.
TEST(HeatMap, ALookInPiecesIsOneWindow) {
    HeatMap map;
    for (int look = 0; look < 5; ++look)
        for (std::uint64_t page = 0; page < 512; page += 4)
            map.observe(kBase + page, std::vector{kHot, kCold});
    EXPECT_EQ(map.at(kBase).windows, 5U);
    EXPECT_EQ(map.at(kBase + 508).windows, 5U);
    EXPECT_EQ(map.at(kBase + 508).heat.lasting(), map.at(kBase).heat.lasting());
    EXPECT_LT(map.at(kBase + 509).heat.lasting(), 10U);
    // One piece alone is another look each time.
    HeatMap one;
    for (int look = 0; look < 5; ++look) one.observe(kBase + 8, std::vector{kHot});
    EXPECT_EQ(one.at(kBase).windows, 5U);
}

TEST(HeatMap, TiersFollowMoves) {
    HeatMap map;
    map.observe(kBase, std::vector(8, kHot));
    map.set_tier(kBase + 1, 0);
    EXPECT_EQ(map.at(kBase + 1).heat.tier(), 0);
    EXPECT_EQ(map.at(kBase + 2).heat.tier(), 1);
    map.set_tier(kBase + 100, 0);
    EXPECT_EQ(map.at(kBase + 100).heat.tier(), PageHeat::kNowhere) << "nothing is known of it";
    EXPECT_EQ(map.at(7).heat.tier(), PageHeat::kNowhere);
}

TEST(HeatMap, ItIsKnownHowLongAgoAPageWasSeenTouched) {
    HeatMap map;
    map.observe(kBase, std::vector{kHot, kCold});
    map.advance(3);
    map.observe(kBase, std::vector{kHot, kCold});
    EXPECT_EQ(map.at(kBase).untouched, 0U);
    EXPECT_EQ(map.at(kBase + 1).untouched, 3U) << "since it came";
    map.advance(4);
    EXPECT_EQ(map.at(kBase).untouched, 4U);
    EXPECT_EQ(map.at(kBase + 1).untouched, 7U);
}

TEST(HeatMap, WhatIsOldStaysOldHoweverOftenTheClockGoesAround) {
    HeatMap map;
    PageSeen huge = kCold;
    huge.huge = true;
    map.observe(kBase, std::vector(512, huge));
    map.observe(kBase + 512, std::vector{kCold});
    for (int window = 0; window < 100; ++window) {
        map.advance(window % 60);
        map.observe(kBase, std::vector(512, huge));
        map.observe(kBase + 512, std::vector{kCold});
    }
    EXPECT_EQ(map.at(kBase).untouched, HeatMap::kLongestUntouched);
    EXPECT_EQ(map.at(kBase + 512).untouched, HeatMap::kLongestUntouched);
    map.advance(1'000'000);
    EXPECT_EQ(map.at(kBase + 512).untouched, HeatMap::kLongestUntouched) << "nobody looked for a long time";
    map.observe(kBase + 512, std::vector{kHot});
    EXPECT_EQ(map.at(kBase + 512).untouched, 0U);
}

TEST(HeatMap, PagesOfASplitHugePageWereTouchedWhenItWas) {
    HeatMap map;
    PageSeen huge = kHot;
    huge.huge = true;
    map.observe(kBase, std::vector(512, huge));
    map.advance(5);
    map.observe(kBase, std::vector(512, kCold));
    EXPECT_EQ(map.at(kBase + 77).untouched, 5U);
}

}  // namespace
}  // namespace memtide::agent

#include "tiering-agent/policy/true_heat.h"

#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

constexpr unsigned kWindows = 100;

// Units whose true shares are as `share_of` says, after so many windows.
TrueHeat::Counts seen(std::size_t units, const std::function<double(std::size_t)>& share_of,
                      unsigned windows = kWindows) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> chance(0, 1);
    TrueHeat::Counts counts{};
    for (std::size_t unit = 0; unit < units; ++unit) {
        PageHeat heat;
        for (unsigned window = 0; window < windows; ++window)
            heat.observe(chance(random) < share_of(unit), window, static_cast<std::uint32_t>(random()));
        ++counts[heat.lasting()];
    }
    return counts;
}

TEST(TrueHeat, UnitsThatAreAlikeAreKnownToBe) {
    const auto counts = seen(50'000, [](std::size_t) { return 0.2; });
    const TrueHeat heat(counts, kWindows);
    ASSERT_GT(counts[35], 0U);
    ASSERT_GT(counts[70], 0U);
    // Two standard deviations of chance, of which little is left.
    EXPECT_NEAR(heat.mean(35), 51, 4);
    EXPECT_NEAR(heat.mean(70), 51, 4);
    EXPECT_LT(std::sqrt(heat.variance(51)), 5);
    EXPECT_GT(std::sqrt(variance_of_heat(51, false, kWindows)), 12);
}

TEST(TrueHeat, KindsOfUnitsAreToldApart) {
    const auto counts = seen(50'000, [](std::size_t unit) { return unit % 5 == 0 ? 0.02 : 0.5; });
    const TrueHeat heat(counts, kWindows);
    EXPECT_NEAR(heat.mean(128), 128, 6);
    EXPECT_NEAR(heat.mean(100), 124, 12);
    EXPECT_LT(heat.mean(4), 8);
}

TEST(TrueHeat, TheOrderStaysAndSlopesAreNotTakenForSteps) {
    const auto counts = seen(50'000, [](std::size_t unit) { return double(unit) / 50'000; });
    const TrueHeat heat(counts, kWindows);
    double before = -1;
    for (unsigned share = 10; share < 246; share += 8) {
        ASSERT_GT(counts[share], 0U);
        EXPECT_GT(heat.mean(share), before);
        EXPECT_NEAR(heat.mean(share), share, 12) << "nothing tells that there are fewer kinds";
        before = heat.mean(share);
    }
}

TEST(TrueHeat, FewUnitsAreTakenAsTheyLook) {
    TrueHeat::Counts counts{};
    counts[20] = counts[200] = 1;
    const TrueHeat heat(counts, 64);
    EXPECT_NEAR(heat.mean(20), 20, 12);
    EXPECT_NEAR(heat.mean(200), 200, 12);
    const TrueHeat nothing(TrueHeat::Counts{}, 0);
    EXPECT_EQ(nothing.mean(7), 0);
}

TEST(TrueHeat, FewWindowsTellLess) {
    const auto share = [](std::size_t unit) { return unit % 2 == 0 ? 0.1 : 0.3; };
    const TrueHeat few(seen(20'000, share, 4), 4);
    const TrueHeat many(seen(20'000, share, 60), 60);
    EXPECT_GT(few.variance(64), many.variance(64));
}

}  // namespace
}  // namespace memtide::agent

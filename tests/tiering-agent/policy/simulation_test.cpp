// What the policy comes to on loads of which the best placement is known.
#include <gtest/gtest.h>

#include "tests/tiering-agent/policy/simulator.h"

namespace memtide::agent {
namespace {

constexpr std::size_t kPages = 20'000;
constexpr double kTouches = 5e5;  // a second
constexpr Simulator::Machine kMachine{.fast_pages = kPages / 3};

TEST(Simulation, HotSetThatJumpsIsFollowed) {
    Simulator simulator(kMachine, kPages, 1);
    const std::size_t hot = kPages / 20;
    for (std::size_t phase = 0; phase < 3; ++phase) {
        simulator.set_rates(hot_set(kPages, kPages - hot * (1 + 2 * phase), hot, 0.9, kTouches));
        const auto score = simulator.run(90);
        EXPECT_GT(score.hit_over_oracle(), 0.99) << phase;
        EXPECT_LT(score.recovered, 3) << phase;
        // Each hot page has to come, and another to leave.
        EXPECT_LT(score.regret, 4) << phase;
        EXPECT_LE(score.wasted_pages, score.moved_pages / 100) << phase;
        EXPECT_LT(score.processor_share, 0.03) << phase;
    }
}

// Of so many pages the warmest and the coldest always differ by more than chance makes two of them differ.
TEST(Simulation, WhatHasSettledMovesNoMore) {
    constexpr std::size_t kMany = 120'000;
    const Simulator::Machine machine{.fast_pages = kMany / 2};
    Simulator simulator(machine, kMany, 1);
    simulator.set_rates(hot_set(kMany, kMany - 16'000, 16'000, 0.9, kTouches));
    EXPECT_GT(simulator.run(60).hit_over_oracle(), 0.99);
    EXPECT_EQ(simulator.run(120).moved_pages, 0U);
}

// Each page that goes up has been there not long ago, and has to leave again: that is not to and fro.
TEST(Simulation, ALoadThatChangesAllTheTimeIsFollowedAllTheTime) {
    constexpr Simulator::Machine machine{
        .fast_pages = kPages / 2, .copied_per_second = 20'000, .look_cost = std::chrono::milliseconds(60)};
    Simulator simulator(machine, kPages, 1);
    const std::size_t hot = kPages / 7;
    for (std::size_t phase = 0; phase < 9; ++phase) {
        const std::size_t first = phase * 3 % 7 * hot;
        if (phase % 3 == 1)
            simulator.set_rates(zipf(kPages, 4, 0.99, kTouches / 2, static_cast<unsigned>(phase)));
        else
            simulator.set_rates(hot_set(kPages, first, hot, phase % 3 == 0 ? 0.9 : 1.0, kTouches / 2));
        const auto score = simulator.run(20);
        EXPECT_GT(score.hit_over_oracle(), phase % 3 == 1 ? 0.9 : 0.98) << phase;
        EXPECT_LT(score.regret, 4) << phase;
    }
}

TEST(Simulation, PopularKeysOfManySizesAreSortedOut) {
    constexpr std::size_t kFewer = 8'000;
    const Simulator::Machine machine{.fast_pages = kFewer / 3};
    for (const auto& [exponent, least] : {std::pair{0.7, 0.85}, {0.99, 0.93}, {1.2, 0.97}}) {
        Simulator simulator(machine, kFewer, 1);
        simulator.set_rates(zipf(kFewer, 4, exponent, kTouches * 0.4, 7));
        const auto score = simulator.run(40);
        EXPECT_GT(score.hit_over_oracle(), least) << exponent;
        EXPECT_LE(score.wasted_pages, score.moved_pages / 8) << exponent;
        // There is no end of pages that are as warm as others: it must come to rest all the same.
        EXPECT_LT(simulator.run(40).moved_pages, kFewer / 5) << exponent;
    }
}

TEST(Simulation, AnEvenLoadIsLeftAlone) {
    for (const double touches : {kTouches / 100, kTouches, kTouches * 100}) {
        Simulator simulator(kMachine, kPages, 1);
        simulator.set_rates(uniform(kPages, touches));
        EXPECT_EQ(simulator.run(90).moved_pages, 0U) << touches;
    }
}

TEST(Simulation, HugePagesMoveWhole) {
    const Simulator::Machine machine{
        .fast_pages = 40 * kPagesPerHuge, .look_cost = std::chrono::microseconds(500), .unit = kPagesPerHuge};
    Simulator simulator(machine, 120, 1);
    simulator.set_rates(hot_set(120, 100, 10, 0.9, kTouches));
    const auto score = simulator.run(60);
    EXPECT_GT(score.hit_over_oracle(), 0.97);
    EXPECT_LT(score.processor_share, 0.015);
}

TEST(Simulation, ALoadThatEndsIsNotFollowedToAnywhere) {
    Simulator simulator(kMachine, kPages, 1);
    simulator.set_rates(hot_set(kPages, 15'000, 1'000, 0.9, kTouches));
    (void)simulator.run(30);
    simulator.set_rates(uniform(kPages, 1e-6));
    EXPECT_EQ(simulator.run(60).moved_pages, 0U);
}

}  // namespace
}  // namespace memtide::agent

#include "tiering-agent/policy/spread.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/policy/simulator.h"

namespace memtide::agent {
namespace {

void probe(Spread& spread, int times, double fast, double slow = 250) {
    for (int i = 0; i < times; ++i) spread.note({.fast = fast, .slow = slow});
}

TEST(Spread, NothingIsSpreadAsLongAsTheFasterTierIsFaster) {
    Spread spread;
    probe(spread, 100, 100);
    probe(spread, 100, 240);
    EXPECT_EQ(spread.most_fast(), 1);
    EXPECT_NEAR(spread.loaded(), 2.4, 0.1);
}

TEST(Spread, WhenItAnswersLaterThanTheSlowerOneLessShouldFallOnIt) {
    Spread spread;
    probe(spread, 1, 100);
    spread.set_now(0.9);
    probe(spread, 2, 400);
    EXPECT_EQ(spread.most_fast(), 1) << "two probes may be chance";
    probe(spread, 1, 400);
    EXPECT_NEAR(spread.most_fast(), 0.85, 1e-9);
    probe(spread, 1'000, 400);
    EXPECT_NEAR(spread.most_fast(), 0.3, 1e-9) << "and no less";
    spread.set_now(0.3);
    probe(spread, 20, 250);
    EXPECT_NEAR(spread.most_fast(), 0.3, 1e-9) << "alike: it stays";
    probe(spread, 1'000, 110);
    EXPECT_EQ(spread.most_fast(), 1);
}

// An emulated machine, or one whose tiers are named so by hand.
TEST(Spread, TiersThatAreAlikeAreNotSpreadByNoise) {
    Spread spread;
    for (int i = 0; i < 10'000; ++i) spread.note({.fast = 100.0 + i % 7 * 6, .slow = 100.0 + i % 5 * 4});
    EXPECT_EQ(spread.most_fast(), 1);
    probe(spread, 100, 160, 100);
    EXPECT_LT(spread.most_fast(), 1) << "a stable difference under load is none";
}

TEST(Spread, WhatIsNotKnownChangesNothing) {
    Spread spread;
    probe(spread, 10, 0);
    probe(spread, 10, 100, 0);
    EXPECT_EQ(spread.most_fast(), 1);
    EXPECT_EQ(spread.loaded(), 1);
}

class Bandwidth : public testing::Test {
  protected:
    static constexpr std::size_t kPages = 20'000;
    static constexpr double kTouches = 5e5;
    // Of a load that the faster tier could bear so many times.
    static Simulator::Score run(double times, bool spreads) {
        Simulator simulator({.fast_pages = kPages / 3, .fast_touches = times * kTouches, .spreads = spreads},
                            kPages, 1);
        simulator.set_rates(hot_set(kPages, kPages - kPages / 20, kPages / 20, 0.9, kTouches));
        return simulator.run(120);
    }
};

TEST_F(Bandwidth, SpreadingBeatsPackingWhereTheFasterTierIsTheBottleneck) {
    const auto packed = run(1, false);
    const auto spread = run(1, true);
    EXPECT_LT(spread.latency_ns, 0.6 * packed.latency_ns);
    EXPECT_GT(spread.hit, 0.5) << "the faster tier is still the one to be on";
}

TEST_F(Bandwidth, WhereItIsNotNothingChanges) {
    const auto packed = run(3, false);
    const auto spread = run(3, true);
    EXPECT_EQ(spread.hit, packed.hit);
    EXPECT_EQ(spread.moved_pages, packed.moved_pages);
}

TEST_F(Bandwidth, ItComesToRest) {
    Simulator simulator({.fast_pages = kPages / 3, .fast_touches = kTouches}, kPages, 1);
    simulator.set_rates(hot_set(kPages, kPages - kPages / 20, kPages / 20, 0.9, kTouches));
    (void)simulator.run(200);
    EXPECT_LT(simulator.run(100).moved_pages, 200U);
}

}  // namespace
}  // namespace memtide::agent

#include "tiering-agent/policy/way_choice.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

using Way = WayChoice::Way;

// So many windows, in which each way sees so many pages touched.
void watch(WayChoice& choice, int windows, std::uint64_t written, std::uint64_t accessed,
           std::chrono::microseconds cost = {}) {
    for (int i = 0; i < windows; ++i) {
        const Way way = choice.next();
        choice.note(way, way == Way::kWrites ? written : accessed);
        if (way == Way::kWrites) choice.note_cost(cost);
    }
}

TEST(WayChoice, BothAreTriedFirst) {
    WayChoice choice(0.02);
    int writes = 0;
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(choice.is_trial(), choice.next() != Way::kWrites)
            << "what each sees is no measure for the other";
        writes += choice.next() == Way::kWrites ? 1 : 0;
        choice.note(choice.next(), 100);
    }
    EXPECT_EQ(writes, 2);
}

TEST(WayChoice, WritesAreEnoughForWhoWritesWhatItTouches) {
    WayChoice choice(0.02);
    watch(choice, 10, 900, 1'000);
    EXPECT_EQ(choice.way(), Way::kWrites);
}

TEST(WayChoice, WhoReadsNeedsTheOther) {
    WayChoice choice(0.02);
    watch(choice, 10, 200, 1'000);
    EXPECT_EQ(choice.way(), Way::kAccesses);
}

TEST(WayChoice, AProcessThatBeginsToReadIsNoticedByTrials) {
    WayChoice choice(0.02);
    watch(choice, 20, 900, 1'000);
    ASSERT_EQ(choice.way(), Way::kWrites);
    int trials = 0;
    for (int i = 0; i < 200; ++i) {
        trials += choice.is_trial() ? 1 : 0;
        choice.note(choice.next(), choice.next() == Way::kWrites ? 50 : 1'000);
        if (choice.way() == Way::kAccesses) break;
    }
    EXPECT_EQ(choice.way(), Way::kAccesses);
    EXPECT_LE(trials, 2);
    watch(choice, 200, 1'000, 1'000);
    EXPECT_EQ(choice.way(), Way::kWrites) << "and back";
}

// What it reads in it writes; then it only reads.
TEST(WayChoice, WhatWasTrueWhileAProgramBeganIsFoundOutToBeSoNoMore) {
    WayChoice choice(0.02);
    watch(choice, 5, 1'000, 1'000);
    ASSERT_EQ(choice.way(), Way::kWrites);
    int windows = 0;
    while (choice.way() == Way::kWrites && windows < 100) {
        watch(choice, 1, 0, 1'000);
        ++windows;
    }
    EXPECT_LE(windows, 4);
}

TEST(WayChoice, TheOtherIsTriedTheLessOftenTheLongerAllIsAsItWas) {
    WayChoice choice(0.02);
    std::vector<int> trials;
    for (int i = 0; i < 200; ++i) {
        if (choice.is_trial()) trials.push_back(i);
        watch(choice, 1, 1'000, 1'000);
    }
    ASSERT_GE(trials.size(), 6U);
    EXPECT_LE(trials[0], 6);
    EXPECT_LE(trials[1] - trials[0], 6);
    EXPECT_EQ(trials.back() - trials[trials.size() - 2], 33);
}

// As accessed bits are where processors seldom forget what they know of a page.
TEST(WayChoice, WhatTheOtherSeesMayVaryAsItWill) {
    WayChoice choice(0.02);
    watch(choice, 10, 1'000, 1'000);
    int trials = 0;
    for (int i = 0; i < 200; ++i) {
        trials += choice.is_trial() ? 1 : 0;
        watch(choice, 1, 1'000, i % 2 == 0 ? 1'000 : 1);
    }
    EXPECT_LE(trials, 9);
    EXPECT_EQ(choice.way(), Way::kWrites);
}

// On the border it stays as it is.
TEST(WayChoice, DoesNotGoToAndFro) {
    WayChoice reader(0.02);
    watch(reader, 20, 500, 1'000);
    watch(reader, 200, 700, 1'000);
    EXPECT_EQ(reader.way(), Way::kAccesses);
    WayChoice writer(0.02);
    watch(writer, 20, 900, 1'000);
    watch(writer, 200, 700, 1'000);
    EXPECT_EQ(writer.way(), Way::kWrites);
}

// In a short window the first writes to so many pages are all that it comes to.
TEST(WayChoice, WhoIsBusyWithTheFaultsOfItsWritesWrites) {
    const auto way_of = [](std::uint64_t written, double faulting) {
        WayChoice choice(0.02);
        for (int i = 0; i < 40; ++i) {
            const Way way = choice.next();
            choice.note(way, way == Way::kWrites ? written : 1'000, way == Way::kWrites ? faulting : 0);
        }
        return choice.way();
    };
    EXPECT_EQ(way_of(300, 0.2), Way::kWrites);
    EXPECT_EQ(way_of(300, 0.01), Way::kAccesses);
    EXPECT_EQ(way_of(50, 0.2), Way::kAccesses) << "it writes to few of the pages that it reads";
}

TEST(WayChoice, FaultsThatAreTooDearAreNotAskedFor) {
    WayChoice choice(0.02);
    watch(choice, 20, 1'000, 1'000, std::chrono::seconds(16));  // every 800 s at 2 %
    EXPECT_EQ(choice.way(), Way::kAccesses);
    WayChoice cheap(0.02);
    watch(cheap, 20, 1'000, 1'000, std::chrono::milliseconds(500));
    EXPECT_EQ(cheap.way(), Way::kWrites);
}

TEST(WayChoice, HugePagesAreWatchedByAccesses) {
    WayChoice choice(0.02);
    watch(choice, 20, 1'000, 1'000);
    choice.set_only_accesses(true);
    EXPECT_EQ(choice.next(), Way::kAccesses);
    EXPECT_FALSE(choice.is_trial());
    choice.set_only_accesses(false);
    EXPECT_EQ(choice.way(), Way::kWrites);
}

}  // namespace
}  // namespace memtide::agent

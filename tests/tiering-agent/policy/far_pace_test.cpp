#include "tiering-agent/policy/far_pace.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

// A GiB of which half has been untouched for long: 0.2 % of what is in use are 262 pages a minute.
FarPace::Interval calm() {
    return {.seconds = 5,
            .pressure = 0,
            .sent = 0,
            .resident = 262'144,
            .working_set = 131'072,
            .cold = 131'072,
            .room = 1'000'000};
}

class FarPaces : public testing::Test {
  protected:
    // So many intervals in which all that may go goes.
    void go_on(unsigned intervals, FarPace::Interval interval = calm()) {
        for (unsigned i = 0; i < intervals; ++i) {
            interval.sent = last_;
            last_ = pace_.note(interval);
            total_ += last_;
        }
    }
    FarPace pace_{{.sees_reads = true}};
    std::uint64_t last_ = 0;
    std::uint64_t total_ = 0;
};

TEST_F(FarPaces, BeginsSmallAndGrowsSlowlyToItsMost) {
    go_on(1);
    EXPECT_EQ(pace_.state(), FarState::kSending);
    EXPECT_LT(last_, 262'144 / 1000) << "a thousandth in 5 s";
    EXPECT_GT(last_, 0U);
    go_on(60);
    EXPECT_EQ(last_, 2'621U) << "a hundredth";
}

TEST_F(FarPaces, GrowsSlowerWhereReadsAreNotSeen) {
    FarPace blind{{.sees_reads = false}};
    FarPace::Interval interval = calm();
    for (int i = 0; i < 12; ++i) interval.sent = blind.note(interval);
    go_on(12);
    EXPECT_LT(interval.sent, last_ / 2);
}

TEST_F(FarPaces, PressureStopsItAtOnceAndForAWhile) {
    go_on(30);
    const double before = pace_.pages_per_minute();
    FarPace::Interval pressed = calm();
    pressed.pressure = 0.002;
    go_on(1, pressed);
    EXPECT_EQ(pace_.state(), FarState::kPressure);
    EXPECT_EQ(last_, 0U);
    go_on(5);
    EXPECT_EQ(last_, 0U) << "half a minute";
    go_on(2);
    EXPECT_GT(last_, 0U);
    EXPECT_LT(pace_.pages_per_minute(), 0.6 * before);
}

TEST_F(FarPaces, PressureThatComesBackStopsItForLonger) {
    const auto pause = [&] {
        FarPace::Interval pressed = calm();
        pressed.pressure = 0.5;
        go_on(1, pressed);
        unsigned intervals = 0;
        do {
            go_on(1);
            ++intervals;
        } while (last_ == 0 && intervals < 1'000);
        return intervals;
    };
    go_on(1);
    const unsigned first = pause();
    EXPECT_GE(pause(), 2 * first - 1);
    EXPECT_GE(pause(), 4 * first - 3);
    for (int i = 0; i < 10; ++i) pause();
    EXPECT_LE(pause(), 600U / 5) << "ten minutes at most";
    go_on(130);
    EXPECT_LE(pause(), first + 1) << "after ten calm minutes it is forgotten";
}

TEST_F(FarPaces, WithoutPressureTellingItGoesByWhatComesBack) {
    FarPace::Interval interval = calm();
    interval.pressure.reset();
    go_on(3, interval);
    EXPECT_GT(last_, 0U);
    interval.returned = 300;
    go_on(1, interval);
    EXPECT_EQ(pace_.state(), FarState::kComesBack);
    EXPECT_EQ(last_, 0U);
}

TEST_F(FarPaces, WhatComesBackHalvesItOnceAndStopsItUntilItIsFewer) {
    go_on(30);
    const double before = pace_.pages_per_minute();
    FarPace::Interval back = calm();
    back.returned = 400;
    go_on(1, back);
    go_on(3);
    EXPECT_NEAR(pace_.pages_per_minute(), before / 2, before / 100) << "once for one piece of news";
    EXPECT_EQ(last_, 0U);
    go_on(10);
    EXPECT_GT(last_, 0U);
}

TEST_F(FarPaces, TheFirstTwoPercentThatComeBackTooSoonSlowItDown) {
    go_on(10);
    const double before = pace_.pages_per_minute();
    FarPace::Interval back = calm();
    back.returned = back.returned_soon = total_ / 40;
    ASSERT_LT(double(back.returned), pace_.returns_allowed()) << "that alone would be no reason";
    go_on(1, back);
    EXPECT_EQ(pace_.state(), FarState::kSlowed);
    EXPECT_LT(pace_.pages_per_minute(), 0.6 * before);
    EXPECT_GT(last_, 0U) << "slowed, not stopped";
}

TEST_F(FarPaces, EvenIfAllComesBackItIsNoMoreThanIsAllowed) {
    double returned = 0;
    constexpr int kIntervals = 720;
    for (int i = 0; i < kIntervals; ++i) {
        FarPace::Interval interval = calm();
        interval.sent = interval.returned = interval.returned_soon = last_;
        returned += double(last_);
        go_on(1, interval);
    }
    EXPECT_LT(returned / (kIntervals / 12.0), pace_.returns_allowed());
}

TEST_F(FarPaces, RateThatIsNotUsedDoesNotGrow) {
    for (int i = 0; i < 100; ++i) pace_.note(calm());
    EXPECT_LE(pace_.pages_per_minute(), 262'144 * 0.011);
}

TEST_F(FarPaces, SaysWhyNothingGoes) {
    FarPace::Interval interval = calm();
    interval.cold = 0;
    go_on(1, interval);
    EXPECT_EQ(pace_.state(), FarState::kNothingCold);
    interval = calm();
    interval.room = 0;
    go_on(1, interval);
    EXPECT_EQ(pace_.state(), FarState::kFull);
    EXPECT_EQ(total_, 0U);
    EXPECT_EQ(to_string(FarState::kFull), "full");
}

TEST_F(FarPaces, NeverMoreThanThereIsAndHasRoom) {
    FarPace::Interval interval = calm();
    interval.room = 10;
    go_on(3, interval);
    EXPECT_EQ(last_, 10U);
    interval.room = 1'000;
    interval.cold = 7;
    go_on(1, interval);
    EXPECT_EQ(last_, 7U);
}

TEST_F(FarPaces, ALongPauseIsNotMadeUpFor) {
    go_on(1);
    FarPace::Interval late = calm();
    late.seconds = 300;
    go_on(1, late);
    EXPECT_LT(last_, 262'144 / 100);
}

}  // namespace
}  // namespace memtide::agent

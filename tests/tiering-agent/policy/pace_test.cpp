#include "tiering-agent/policy/pace.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Pace::Round round(std::uint64_t touched, std::uint64_t moved = 0) {
    return {.present_pages = 200'000,
            .touched_pages = touched,
            .touched_slow_pages = touched / 10,
            .fast_pages = 100'000,
            .moved_pages = moved,
            .cost = microseconds(20'000),
            .blur = microseconds(20'000)};
}

TEST(Pace, WindowsTouchAPartOfWhatFits) {
    Pace pace({});
    // A load that touches 100,000 pages a second.
    for (int i = 0; i < 20; ++i) pace.note(round(static_cast<std::uint64_t>(100 * pace.window().count())));
    EXPECT_GE(pace.window(), milliseconds(100));
    EXPECT_LE(pace.window(), milliseconds(500));
    for (int i = 0; i < 20; ++i) pace.note(round(100'000));
    EXPECT_EQ(pace.window(), milliseconds(20)) << "not shorter than a look takes";
    for (int i = 0; i < 20; ++i) pace.note(round(0));
    EXPECT_EQ(pace.window(), Pace::Options{}.longest_window);
}

TEST(Pace, WhereTheFirstTouchesAreEnoughAWindowNeedNotBeLong) {
    Pace pace({});
    Pace::Round cut = round(30'000);
    cut.is_cut = true;
    for (int i = 0; i < 20; ++i) pace.note(cut);
    EXPECT_EQ(pace.window(), milliseconds(20)) << "as long as a look takes";
}

TEST(Pace, RestsKeepTheCostBelowItsShare) {
    Pace pace({});
    for (int i = 0; i < 30; ++i) pace.note(round(30'000));
    EXPECT_FALSE(pace.is_changing());
    EXPECT_NEAR(double((pace.window() + pace.rest()).count()), 20 / 0.01, 1);
    pace.note(round(30'000, 5'000));
    EXPECT_TRUE(pace.is_changing());
    EXPECT_LE((pace.window() + pace.rest()).count(), 20 / 0.1 + 1);
}

TEST(Pace, RestsKeepTheSlowdownBelowItsShare) {
    Pace pace({});
    Pace::Round disturbing = round(30'000);
    disturbing.disturbance = microseconds(100'000);
    for (int i = 0; i < 30; ++i) pace.note(disturbing);
    EXPECT_NEAR(double((pace.window() + pace.rest()).count()), 100 / 0.02, 1);
}

TEST(Pace, WhatIsDearIsAskedForSeldomHoweverSeldomThatIs) {
    Pace pace({});
    Pace::Round dear = round(30'000);
    dear.cost = std::chrono::seconds(17);  // a TiB
    for (int i = 0; i < 30; ++i) pace.note(dear);
    EXPECT_NEAR(double((pace.window() + pace.rest()).count()), 1'700'000, 1);
}

TEST(Pace, WhereNothingIsToBeGainedRestsGrowAndEndWhenSomethingChanges) {
    Pace pace({});
    Pace::Round even = round(30'000);
    even.is_even = true;
    for (int i = 0; i < 30; ++i) pace.note(even);
    EXPECT_EQ(pace.rest(), Pace::Options{}.longest_rest);
    even.touched_slow_pages = 9'000;
    pace.note(even);
    EXPECT_LT(pace.rest(), milliseconds(500));
}

TEST(Pace, MoreTouchesOfTheSlowerTierThanUsualAreASurprise) {
    Pace pace({});
    for (int i = 0; i < 30; ++i) pace.note(round(30'000));
    EXPECT_FALSE(pace.is_changing());
    Pace::Round jump = round(30'000);
    jump.touched_slow_pages = 6'000;
    pace.note(jump);
    EXPECT_TRUE(pace.is_changing());
    for (int i = 0; i < 30; ++i) pace.note(jump);
    EXPECT_FALSE(pace.is_changing()) << "it is the usual thing now";
}

// It costs the more the longer it is, and from what is touched nobody knows by how much it is too long.
TEST(Pace, AWindowInWhichAllIsTouchedShrinksAtOnce) {
    Pace pace({});
    for (int i = 0; i < 10; ++i) pace.note(round(0));
    const auto before = pace.window();
    pace.note(round(199'000));
    EXPECT_EQ(pace.window(), before / 8);
}

TEST(Pace, AWindowThatIsSharpIsAsShortAsItHasToBe) {
    Pace pace({});
    Pace::Round all = round(200'000);
    all.blur = {};
    for (int i = 0; i < 20; ++i) pace.note(all);
    EXPECT_EQ(pace.window(), Pace::Options{}.shortest_window);
}

TEST(Pace, ARoundThatTellsNothingChangesNothing) {
    Pace pace({});
    for (int i = 0; i < 30; ++i) pace.note(round(30'000));
    const auto window = pace.window();
    Pace::Round trial = round(0);
    trial.present_pages = trial.touched_slow_pages = 0;
    pace.note(trial);
    EXPECT_EQ(pace.window(), window);
    pace.note(round(30'000));
    EXPECT_FALSE(pace.is_changing()) << "what is usual is what it was";
}

TEST(Pace, WokenItLooksMoreOften) {
    Pace pace({});
    Pace::Round even = round(30'000);
    even.is_even = true;
    for (int i = 0; i < 30; ++i) pace.note(even);
    pace.wake();
    EXPECT_TRUE(pace.is_changing());
    pace.note(even);
    EXPECT_LT(pace.rest(), milliseconds(500));
}

TEST(Pace, WithoutAFasterTierNothingIsLearnt) {
    Pace pace({});
    const auto window = pace.window();
    pace.note({});
    EXPECT_EQ(pace.window(), window);
}

}  // namespace
}  // namespace memtide::agent

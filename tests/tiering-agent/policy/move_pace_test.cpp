#include "tiering-agent/policy/move_pace.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

void pass(MovePace& pace, int seconds, const MovePace::Interval& each) {
    for (int i = 0; i < seconds; ++i) pace.note(each);
}

TEST(MovePace, IsFullWhereNobodyWaits) {
    MovePace pace({.pressure = 0.1});
    pass(pace, 10, {.seconds = 1, .pressure = 0.1, .moved = true});
    EXPECT_EQ(pace.share(), 1);
    pass(pace, 10, {.seconds = 1, .pressure = std::nullopt, .moved = true});
    EXPECT_EQ(pace.share(), 1) << "a kernel that does not tell";
}

TEST(MovePace, HalvesWhileProcessesWaitAndComesBackSlowly) {
    MovePace pace({.pressure = 0.1});
    pass(pace, 1, {.seconds = 1, .pressure = 0.3});
    EXPECT_EQ(pace.share(), 0.5);
    EXPECT_TRUE(pace.is_pressure());
    pass(pace, 100, {.seconds = 1, .pressure = 0.3});
    EXPECT_EQ(pace.share(), 1.0 / 64);
    pass(pace, 4, {.seconds = 1, .pressure = 0.0});
    EXPECT_NEAR(pace.share(), 0.5, 0.02);
    pass(pace, 100, {.seconds = 1, .pressure = 0.0});
    EXPECT_EQ(pace.share(), 1);
}

TEST(MovePace, GivesWayToWhoNeedsTheMemoryThatItCopies) {
    MovePace pace({.pressure = 0.1});
    pass(pace, 1, {.seconds = 1, .pressure = 0.0, .latency = 5, .moved = false});
    EXPECT_EQ(pace.share(), 1) << "not its doing";
    pass(pace, 1, {.seconds = 1, .pressure = 0.0, .latency = 5, .moved = true});
    EXPECT_EQ(pace.share(), 0.5);
    EXPECT_FALSE(pace.is_pressure());
}

}  // namespace
}  // namespace memtide::agent

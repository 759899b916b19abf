#include "libmemtide/src/budget.h"

#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "libmemtide/src/slow_path.h"

namespace memtide::library {

std::mutex& slow_path() {
    static std::mutex mutex;
    return mutex;
}

namespace {

// Budgets live as long as their threads.
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(Budget, NoMoreIsTakenThanTheTierHas) {
    static Budget budget(0, [] { return Budget::Room{.capacity = 100 * kMiB, .free = 100 * kMiB}; });
    EXPECT_FALSE(budget.take(101 * kMiB));
    EXPECT_TRUE(budget.take(60 * kMiB));
    EXPECT_FALSE(budget.take(60 * kMiB)) << "though nobody has touched it yet";
    budget.give_back(60 * kMiB);
    EXPECT_TRUE(budget.take(60 * kMiB));
    budget.give_back(60 * kMiB);
}

TEST(Budget, NoMoreIsTakenThanIsFree) {
    static std::int64_t free = 50 * kMiB;
    static Budget budget(1, [] { return Budget::Room{.capacity = 100 * kMiB, .free = free}; });
    EXPECT_FALSE(budget.take(60 * kMiB));
    EXPECT_TRUE(budget.take(40 * kMiB));
    free = 0;
    EXPECT_FALSE(budget.take(20 * kMiB));
}

TEST(Budget, WhatWasFreedAndKeptNeedsNoRoom) {
    static std::int64_t free = 60 * kMiB;
    static Budget budget(2, [] { return Budget::Room{.capacity = 100 * kMiB, .free = free}; });
    ASSERT_TRUE(budget.take(50 * kMiB));
    free = 0;  // it was touched
    budget.give(50 * kMiB);
    EXPECT_TRUE(budget.take(45 * kMiB));
    EXPECT_FALSE(budget.take(45 * kMiB));
}

TEST(Budget, AThreadThatEndsLeavesWhatItDidNotUse) {
    static int asked = 0;
    static Budget budget(3, [] {
        ++asked;
        return Budget::Room{.capacity = 1000 * kMiB, .free = 16 * kMiB};
    });
    for (int i = 0; i < 100; ++i)
        std::jthread([&] {
            EXPECT_TRUE(budget.take(1000));
            budget.give(1000);
        }).join();
    EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace memtide::library

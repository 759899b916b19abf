#include "tiering-agent/policy/thread_choice.h"

#include <functional>
#include <map>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

constexpr std::uint64_t kBatch = 2'048;

// Batches on a machine where so many threads move so many pages a microsecond; how often each was used.
std::map<unsigned, int> run(ThreadChoice& choice, int batches, const std::function<double(unsigned)>& rate) {
    std::map<unsigned, int> used;
    for (int i = 0; i < batches; ++i) {
        const unsigned threads = choice.threads(kBatch);
        ++used[threads];
        choice.note(threads, kBatch, std::chrono::nanoseconds(std::int64_t(kBatch * 1'000 / rate(threads))));
    }
    return used;
}

TEST(ThreadChoice, AThreadMoreHasToBeWorthIt) {
    ThreadChoice choice(8);
    run(choice, 100, [](unsigned threads) { return threads <= 2 ? threads : 2 + 0.1 * threads; });
    EXPECT_EQ(choice.chosen(), 4U);  // 2.4 times as fast as one; 8 are hardly faster than 4
    ThreadChoice alone(8);
    run(alone, 100, [](unsigned) { return 1.0; });
    EXPECT_EQ(alone.chosen(), 1U);
}

TEST(ThreadChoice, WhatDoesNotHelpIsTriedSeldom) {
    ThreadChoice choice(4);
    const auto used = run(choice, 1'000, [](unsigned threads) { return 1.0 / threads; });
    EXPECT_EQ(choice.chosen(), 1U);
    EXPECT_GE(used.at(1), 950);
}

TEST(ThreadChoice, FollowsTheMachine) {
    ThreadChoice choice(2);
    run(choice, 200, [](unsigned) { return 1.0; });
    EXPECT_EQ(choice.chosen(), 1U);
    run(choice, 1'000, [](unsigned threads) { return 1.0 * threads; });
    EXPECT_EQ(choice.chosen(), 2U);
    run(choice, 1'000, [](unsigned threads) { return 1.0 / threads; });
    EXPECT_EQ(choice.chosen(), 1U);
}

TEST(ThreadChoice, SmallBatchesAreMovedAlone) {
    ThreadChoice choice(2);
    run(choice, 100, [](unsigned threads) { return 1.0 * threads; });
    EXPECT_EQ(choice.threads(ThreadChoice::kLeastPages - 1), 1U);
    EXPECT_EQ(choice.threads(ThreadChoice::kLeastPages), 2U);
    choice.note(2, 1, std::chrono::hours(1));  // of no account
    EXPECT_EQ(choice.chosen(), 2U);
}

TEST(ThreadChoice, OneIsAlwaysAllowed) {
    for (const unsigned most : {0U, 1U}) {
        ThreadChoice choice(most);
        run(choice, 100, [](unsigned) { return 1.0; });
        EXPECT_EQ(choice.threads(kBatch), 1U);
    }
}

}  // namespace
}  // namespace memtide::agent

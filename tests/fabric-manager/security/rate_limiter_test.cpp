#include "fabric-manager/security/rate_limiter.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

using namespace std::chrono_literals;

const RateLimiter::Clock::time_point kStart{};

TEST(RateLimiter, ABurstPassesAndThenTheRateHolds) {
    RateLimiter limiter({10, 3});
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(limiter.take("a", kStart));
    EXPECT_EQ(limiter.take("a", kStart), 100ms);
    EXPECT_TRUE(limiter.take("a", kStart + 99ms));
    EXPECT_FALSE(limiter.take("a", kStart + 200ms));
}

TEST(RateLimiter, KeysDoNotShareTheirBuckets) {
    RateLimiter limiter({1, 1});
    EXPECT_FALSE(limiter.take("a", kStart));
    EXPECT_TRUE(limiter.take("a", kStart));
    EXPECT_FALSE(limiter.take("b", kStart));
}

TEST(RateLimiter, WithoutARateNobodyIsHeldUp) {
    RateLimiter limiter({0, 0});
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(limiter.take("a", kStart));
    EXPECT_EQ(limiter.key_count(), 0U);
}

TEST(RateLimiter, LookingTakesNothing) {
    RateLimiter limiter({1, 1});
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(limiter.look("a", kStart));
    EXPECT_FALSE(limiter.take("a", kStart));
    EXPECT_TRUE(limiter.look("a", kStart));
}

TEST(RateLimiter, ItRemembersABoundedNumberOfKeysAndForgetsFullBucketsFirst) {
    RateLimiter limiter({1, 2}, 100);
    limiter.take("busy", kStart + 1h);
    limiter.take("busy", kStart + 1h);
    for (int i = 0; i < 99; ++i) limiter.take(std::to_string(i), kStart);
    EXPECT_EQ(limiter.key_count(), 100U);
    limiter.take("new", kStart + 1h);
    EXPECT_LE(limiter.key_count(), 100U);
    EXPECT_TRUE(limiter.take("busy", kStart + 1h));
}

TEST(RateLimiter, AClockThatWentBackGivesNothingAway) {
    RateLimiter limiter({1, 1});
    EXPECT_FALSE(limiter.take("a", kStart + 1h));
    EXPECT_TRUE(limiter.take("a", kStart));
    EXPECT_TRUE(limiter.take("a", kStart + 1h));
}

}  // namespace
}  // namespace memtide::fm

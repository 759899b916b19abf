#include "fabric-manager/engine/flap_damper.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

using namespace std::chrono_literals;
using Verdict = FlapDamper::Verdict;
using Time = FlapDamper::Clock::time_point;

constexpr Time kStart{1'000'000s};
const FlapLimits kLimits{.limit = 3, .window = 60s, .hold = 10s, .hold_max = 40s};

// So many changes, a second apart; the verdict of the last.
Verdict change(FlapDamper& damper, Time& now, int times) {
    Verdict last = Verdict::kChanged;
    for (int i = 0; i < times; ++i) last = damper.note("mld0", now += 1s);
    return last;
}
std::size_t settled(FlapDamper& damper, Time now) { return damper.settle(now).size(); }

TEST(FlapDamper, AsManyChangesAsTheLimitAreFine) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    EXPECT_EQ(change(damper, now, 3), Verdict::kChanged);
    EXPECT_EQ(damper.hold("mld0"), nullptr);
    EXPECT_FALSE(damper.remaining(now));
}

TEST(FlapDamper, OneMoreIsFlappingOnceAndHeldThen) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    EXPECT_EQ(change(damper, now, 4), Verdict::kFlapping);
    EXPECT_EQ(change(damper, now, 1), Verdict::kHeld);
    ASSERT_NE(damper.hold("mld0"), nullptr);
    EXPECT_EQ(damper.hold("mld0")->changes, 5U);
    EXPECT_EQ(damper.held(), 1U);
}

TEST(FlapDamper, ChangesFarApartNeverFlap) {
    FlapDamper damper(kLimits);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(damper.note("mld0", kStart + i * 21s), Verdict::kChanged) << i;
}

TEST(FlapDamper, EachHasItsOwnCount) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    EXPECT_EQ(change(damper, now, 4), Verdict::kFlapping);
    EXPECT_EQ(damper.note("mld1", now), Verdict::kChanged);
}

TEST(FlapDamper, HoldEndsAfterItHasBeenQuiet) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    change(damper, now, 4);
    EXPECT_EQ(damper.remaining(now), 10s);
    EXPECT_EQ(settled(damper, now + 9s), 0U);
    now += 9s;
    EXPECT_EQ(damper.note("mld0", now), Verdict::kHeld);  // not quiet: the time begins anew
    EXPECT_EQ(settled(damper, now + 9s), 0U);
    const auto over = damper.settle(now + 10s);
    ASSERT_EQ(over.size(), 1U);
    EXPECT_EQ(over[0].key, "mld0");
    EXPECT_EQ(over[0].changes, 5U);
    EXPECT_EQ(damper.hold("mld0"), nullptr);
    EXPECT_EQ(damper.held(), 0U);
}

TEST(FlapDamper, HoldDoublesUpToTheLongest) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    change(damper, now, 4);
    EXPECT_EQ(damper.hold("mld0")->length, 10s);
    change(damper, now, 3);
    EXPECT_EQ(damper.hold("mld0")->length, 20s);
    change(damper, now, 3);
    EXPECT_EQ(damper.hold("mld0")->length, 40s);
    change(damper, now, 300);
    EXPECT_EQ(damper.hold("mld0")->length, 40s);
}

TEST(FlapDamper, RelapseIsHeldTwiceAsLongAndIsForgottenInTheEnd) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    change(damper, now, 4);
    ASSERT_EQ(settled(damper, now += 10s), 1U);
    EXPECT_EQ(change(damper, now, 4), Verdict::kFlapping);
    EXPECT_EQ(damper.hold("mld0")->length, 20s);
    ASSERT_EQ(settled(damper, now += 20s), 1U);
    settled(damper, now += 200s);
    EXPECT_EQ(change(damper, now, 4), Verdict::kFlapping);
    EXPECT_EQ(damper.hold("mld0")->length, 10s);
}

TEST(FlapDamper, ClockThatJumpsBackNeitherProlongsNorEndsAHold) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    change(damper, now, 4);
    now -= 24h;
    EXPECT_EQ(settled(damper, now), 0U);
    EXPECT_EQ(damper.remaining(now), 10s);
    EXPECT_EQ(settled(damper, now + 9s), 0U);
    EXPECT_EQ(settled(damper, now + 10s), 1U);
}

TEST(FlapDamper, ClockThatJumpsAheadEndsHoldsAndHarmsNothing) {
    FlapDamper damper(kLimits);
    Time now = kStart;
    change(damper, now, 4);
    EXPECT_EQ(settled(damper, now += 24h), 1U);
    EXPECT_EQ(change(damper, now, 3), Verdict::kChanged);
}

TEST(FlapDamper, LimitOfZeroHoldsNothing) {
    FlapDamper damper({.limit = 0});
    Time now = kStart;
    EXPECT_EQ(change(damper, now, 1000), Verdict::kChanged);
}

// Whatever happens when: what is held is told once, is let go once it was quiet for its time, and is counted.
TEST(FlapDamper, EveryHoldThatBeginsEndsAndTheCountIsRight) {
    std::mt19937 random(7);
    for (int run = 0; run < 200; ++run) {
        FlapDamper damper(kLimits);
        Time now = kStart;
        std::map<std::string, bool> held;
        for (int step = 0; step < 300; ++step) {
            now += std::chrono::milliseconds(static_cast<int>(random() % 20'000)) - 4s;
            const std::string key(1, static_cast<char>('a' + random() % 3));
            if (random() % 4 == 0) {
                for (const auto& over : damper.settle(now)) {
                    EXPECT_TRUE(held[over.key]);
                    held[over.key] = false;
                }
                continue;
            }
            const Verdict verdict = damper.note(key, now);
            EXPECT_EQ(held[key], verdict == Verdict::kHeld);
            if (verdict == Verdict::kFlapping) held[key] = true;
            const auto count = std::ranges::count_if(held, [](const auto& one) { return one.second; });
            EXPECT_EQ(damper.held(), static_cast<std::size_t>(count));
            const auto* hold = damper.hold(key);
            EXPECT_TRUE(hold == nullptr || hold->length <= kLimits.hold_max);
        }
        now += 1h;
        damper.settle(now);
        EXPECT_EQ(damper.held(), 0U);
    }
}

}  // namespace
}  // namespace memtide::fm

#include "cxl-emul/hosts/delay.h"

#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

using namespace std::chrono_literals;

Delay delay(const char* text) {
    const auto parsed = parse_delay(text);
    EXPECT_TRUE(parsed.has_value()) << text;
    return parsed.value_or(Delay{});
}

TEST(Delay, AFixedOneIsAlwaysTheSame) {
    Random random(1);
    EXPECT_EQ(delay("250us").draw(random), 250us);
    EXPECT_EQ(delay("20ms").draw(random), 20ms);
    EXPECT_EQ(delay("2s").draw(random), 2s);
    EXPECT_EQ(delay("1min").draw(random), 60s);
    EXPECT_EQ(delay("1h").draw(random), 3600s);
    EXPECT_EQ(delay("0ms").draw(random), 0us);
}

TEST(Delay, AUniformOneStaysBetweenItsEnds) {
    Random random(2);
    bool low_half = false;
    bool high_half = false;
    for (int i = 0; i < 1000; ++i) {
        const auto drawn = delay("5ms..50ms").draw(random);
        EXPECT_GE(drawn, 5ms);
        EXPECT_LE(drawn, 50ms);
        (drawn < 27ms ? low_half : high_half) = true;
    }
    EXPECT_TRUE(low_half && high_half);
}

TEST(Delay, AnExponentialOneHasItsMeanAndAnEnd) {
    Random random(3);
    std::chrono::microseconds sum{0};
    for (int i = 0; i < 10'000; ++i) {
        const auto drawn = delay("exp:10ms").draw(random);
        EXPECT_LE(drawn, 200ms);
        sum += drawn;
    }
    EXPECT_GT(sum / 10'000, 9ms);
    EXPECT_LT(sum / 10'000, 11ms);
}

TEST(Delay, TheSameSeedDrawsTheSame) {
    Random one(7);
    Random other(7);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(delay("0ms..1s").draw(one), delay("0ms..1s").draw(other));
}

TEST(Delay, WhatIsNoTimeIsRefused) {
    for (const char* text : {"", "20", "ms", "-1ms", "20 ms", "20msx", "5ms..", "..5ms", "50ms..5ms",
                             "exp:", "exp:x", "99999999min", "1e3ms", "9223372036854775807s"})
        EXPECT_FALSE(parse_delay(text).has_value()) << text;
}

}  // namespace
}  // namespace memtide::emul

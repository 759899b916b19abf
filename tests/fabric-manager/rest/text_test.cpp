#include "fabric-manager/rest/text.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

TEST(RestText, TimesAreRfc3339InUtcWithMilliseconds) {
    EXPECT_EQ(format_time(Time{}), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(format_time(Time(std::chrono::milliseconds(1'795'971'801'042))), "2026-11-29T17:03:21.042Z");
    EXPECT_EQ(format_time(Time(std::chrono::milliseconds(-1))), "1969-12-31T23:59:59.999Z");
}

TEST(RestText, DurationsAreReadWithTheirUnits) {
    EXPECT_EQ(parse_duration("250ms"), Milliseconds(250));
    EXPECT_EQ(parse_duration("60s"), Milliseconds(60'000));
    EXPECT_EQ(parse_duration("60"), Milliseconds(60'000));
    EXPECT_EQ(parse_duration("5min"), Milliseconds(300'000));
    EXPECT_EQ(parse_duration("2h"), Milliseconds(7'200'000));
    EXPECT_EQ(parse_duration("7d"), Milliseconds(604'800'000));
    EXPECT_EQ(parse_duration("0s"), Milliseconds(0));
}

TEST(RestText, WhatIsNoDurationIsRefused) {
    for (const auto* text :
         {"", "s", "-1s", "1.5s", "1 s", "1w", "99999999999999999999s", "18446744073709551615d"})
        EXPECT_FALSE(parse_duration(text)) << text;
}

}  // namespace
}  // namespace memtide::fm

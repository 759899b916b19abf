#include "common/hints/hint_ranges.h"

#include <array>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<HintRange> of(const HintRanges& ranges) {
    return {ranges.ranges().begin(), ranges.ranges().end()};
}

TEST(HintRanges, TheLastWordOnAPageCounts) {
    HintRanges ranges;
    ranges.set({10, 20, Hint::kHot});
    ranges.set({12, 14, Hint::kCold});
    EXPECT_THAT(of(ranges), ElementsAre(HintRange{10, 12, Hint::kHot}, HintRange{12, 14, Hint::kCold},
                                        HintRange{14, 20, Hint::kHot}));
    ranges.set({11, 20, Hint::kNone});
    EXPECT_THAT(of(ranges), ElementsAre(HintRange{10, 11, Hint::kHot}));
}

TEST(HintRanges, NeighboursThatAgreeAreOne) {
    HintRanges ranges;
    ranges.set({10, 20, Hint::kPin});
    ranges.set({30, 40, Hint::kPin});
    ranges.set({20, 30, Hint::kPin});
    EXPECT_THAT(of(ranges), ElementsAre(HintRange{10, 40, Hint::kPin}));
    EXPECT_EQ(ranges.pages_of(Hint::kPin), 30U);
    EXPECT_EQ(ranges.pages_of(Hint::kHot), 0U);
}

TEST(HintRanges, WhatDoesNotFitChangesNothing) {
    HintRanges ranges;
    ranges.set({10, 20, Hint::kHot});
    EXPECT_FALSE(ranges.set({12, 14, Hint::kCold}, 2));
    EXPECT_THAT(of(ranges), ElementsAre(HintRange{10, 20, Hint::kHot}));
    EXPECT_TRUE(ranges.set({12, 14, Hint::kCold}, 3));
    EXPECT_TRUE(ranges.set({0, 100, Hint::kNone}, 0)) << "to take hints back always works";
    EXPECT_THAT(of(ranges), IsEmpty());
}

TEST(HintRanges, AsAnArrayOfPagesWouldHaveIt) {
    std::minstd_rand random(7);
    std::array<Hint, 64> pages{};
    HintRanges ranges;
    for (int i = 0; i < 5'000; ++i) {
        const std::uint64_t first = random() % 64;
        const std::uint64_t end = std::min<std::uint64_t>(64, first + random() % 20);
        const auto hint = static_cast<Hint>(random() % 4);
        ranges.set({first, end, hint});
        for (std::uint64_t page = first; page < end; ++page) pages.at(page) = hint;
        HintCursor cursor(ranges.ranges());
        for (std::uint64_t page = 0; page < 64; ++page) ASSERT_EQ(cursor.of(page, 1), pages.at(page));
        for (std::size_t at = 1; at < ranges.ranges().size(); ++at) {
            const HintRange& before = ranges.ranges()[at - 1];
            const HintRange& range = ranges.ranges()[at];
            ASSERT_LE(before.end, range.first);
            ASSERT_TRUE(before.end < range.first || before.hint != range.hint);
        }
    }
}

TEST(HintCursor, AHugePageIsHotForAPartAndColdAsAWhole) {
    HintRanges ranges;
    ranges.set({0, 8, Hint::kCold});
    ranges.set({8, 15, Hint::kCold});
    ranges.set({20, 21, Hint::kHot});
    ranges.set({40, 41, Hint::kPin});
    HintCursor cursor(ranges.ranges());
    EXPECT_EQ(cursor.of(0, 8), Hint::kCold);
    EXPECT_EQ(cursor.of(8, 8), Hint::kNone);
    EXPECT_EQ(cursor.of(16, 8), Hint::kHot);
    EXPECT_EQ(cursor.of(24, 8), Hint::kNone);
    EXPECT_EQ(cursor.of(40, 8), Hint::kPin);
}

}  // namespace
}  // namespace memtide

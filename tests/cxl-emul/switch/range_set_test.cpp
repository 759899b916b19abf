#include "cxl-emul/switch/range_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

using testing::ElementsAre;

RangeSet set_of(std::initializer_list<ByteRange> ranges) {
    return RangeSet(std::span(ranges.begin(), ranges.size()));
}

TEST(RangeSet, JoinsWhatOverlapsOrTouches) {
    EXPECT_THAT(set_of({{10, 20}, {30, 40}, {20, 25}}).ranges(),
                ElementsAre(ByteRange{10, 25}, ByteRange{30, 40}));
    EXPECT_THAT(set_of({{10, 20}, {30, 40}, {15, 30}}).ranges(), ElementsAre(ByteRange{10, 40}));
    EXPECT_TRUE(set_of({{7, 7}}).empty());
}

TEST(RangeSet, LosesWhatIsRemoved) {
    RangeSet set = set_of({{10, 40}});
    set.remove({20, 30});
    EXPECT_THAT(set.ranges(), ElementsAre(ByteRange{10, 20}, ByteRange{30, 40}));
    set.remove({0, 35});
    EXPECT_THAT(set.ranges(), ElementsAre(ByteRange{35, 40}));
    set.remove({40, 50});
    EXPECT_EQ(set.size(), 5U);
}

TEST(RangeSet, KnowsWhatIsInIt) {
    const RangeSet set = set_of({{10, 20}, {30, 40}});
    EXPECT_TRUE(set.contains({12, 20}));
    EXPECT_FALSE(set.contains({15, 35}));
    EXPECT_TRUE(set.overlaps({15, 35}));
    EXPECT_FALSE(set.overlaps({20, 30}));
    EXPECT_EQ(set.within({15, 35}), set_of({{15, 20}, {30, 35}}));
}

TEST(RangeSet, GivesAsFewPiecesAsPossible) {
    const RangeSet set = set_of({{0, 10}, {20, 50}, {60, 80}});
    EXPECT_THAT(set.fewest(20).value(), ElementsAre(ByteRange{60, 80})) << "the tightest";
    EXPECT_THAT(set.fewest(45).value(), ElementsAre(ByteRange{20, 50}, ByteRange{60, 75}));
    EXPECT_FALSE(set.fewest(61));
    EXPECT_EQ(set.tightest(5), (ByteRange{0, 5}));
    EXPECT_FALSE(set.tightest(31));
}

}  // namespace
}  // namespace memtide::emul

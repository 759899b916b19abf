#include "fabric-manager/engine/desired.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

using enum CompositionState;

Composition with(std::vector<std::pair<std::uint32_t, CompositionState>> parts) {
    Composition c;
    c.id = CompositionId("c-1");
    for (const auto& [region, state] : parts) {
        Part part;
        part.number = c.next_part++;
        part.region = region;
        part.size = kCxlGranule;
        part.serial = SerialNumber{100u + part.number};
        part.state = state;
        c.parts.push_back(part);
    }
    return c;
}

TEST(Desired, NothingIsToldBeforeThePartIsBound) {
    for (const CompositionState state : {kPending, kBinding, kErasing, kReleased, kFailed})
        EXPECT_TRUE(desired_regions(with({{0, state}})).empty()) << to_string(state);
}

TEST(Desired, PartsOfTheirOwnAreRegionsOfTheirOwn) {
    const auto regions = desired_regions(with({{0, kOnline}, {1, kDraining}, {2, kBinding}}));
    ASSERT_EQ(regions.size(), 2u);
    EXPECT_TRUE(regions[0].online);
    EXPECT_EQ(regions[0].serials, (std::vector<SerialNumber>{{100}}));
    EXPECT_FALSE(regions[1].online);
    EXPECT_EQ(regions[1].id, (RegionId{CompositionId("c-1"), 1}));
}

TEST(Desired, InterleavedRegionIsToldWhenAllOfItIsBound) {
    EXPECT_TRUE(desired_regions(with({{0, kOnlining}, {0, kBinding}})).empty());
    const auto regions = desired_regions(with({{0, kOnlining}, {0, kOnlining}}));
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_EQ(regions[0].serials, (std::vector<SerialNumber>{{100}, {101}}));
    EXPECT_EQ(regions[0].size, kCxlGranule * 2);
}

TEST(Desired, InterleavedRegionGoesOfflineWhenOneOfItHasTo) {
    const auto regions = desired_regions(with({{0, kOnline}, {0, kDraining}}));
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_FALSE(regions[0].online);
    EXPECT_EQ(regions[0].serials.size(), 2u);
    const auto rest = desired_regions(with({{0, kErasing}, {0, kUnbinding}}));
    ASSERT_EQ(rest.size(), 1u);
    EXPECT_EQ(rest[0].serials, (std::vector<SerialNumber>{{101}}));
}

}  // namespace
}  // namespace memtide::fm

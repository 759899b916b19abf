#include "fabric-manager/engine/shrink.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

// Regions with these sizes in units of 256 MiB.
Composition with(std::vector<std::uint64_t> units) {
    Composition c;
    for (const std::uint64_t size : units) {
        Part part;
        part.number = c.next_part++;
        part.region = part.number;
        part.size = kCxlGranule * size;
        part.state = CompositionState::kOnline;
        c.parts.push_back(part);
    }
    return c;
}
std::set<std::uint32_t> regions(std::initializer_list<std::uint32_t> list) { return list; }

TEST(Shrink, RegionsThatAddUpExactlyAreChosen) {
    const Shrink shrink = choose_shrink(with({4, 1, 2}), kCxlGranule * 3);
    EXPECT_EQ(shrink.regions, regions({1, 2}));
    EXPECT_EQ(shrink.excess, Bytes{});
}

TEST(Shrink, FewerRegionsGoWhenSeveralChoicesFit) {
    EXPECT_EQ(choose_shrink(with({1, 1, 2}), kCxlGranule * 2).regions, regions({2}));
}

TEST(Shrink, WhatGoesTooMuchIsSaid) {
    const Shrink shrink = choose_shrink(with({4}), kCxlGranule);
    EXPECT_EQ(shrink.regions, regions({0}));
    EXPECT_EQ(shrink.excess, kCxlGranule * 3);
}

TEST(Shrink, WhatTheHostDoesNotUseYetGoesFirst) {
    Composition c = with({2, 1, 1, 2});
    for (const std::uint32_t used : {0, 1, 2}) c.parts[used].boot_id = "boot";
    EXPECT_EQ(choose_shrink(c, kCxlGranule * 2).regions, regions({3}));
    EXPECT_EQ(choose_shrink(c, kCxlGranule * 1).regions, regions({1}));  // rather than too much
}

TEST(Shrink, PartsOnTheirWayOutDoNotCount) {
    Composition c = with({2, 2});
    c.parts[0].release_requested = true;
    EXPECT_EQ(choose_shrink(c, kCxlGranule * 2).regions, regions({1}));
}

TEST(Shrink, SizesBelowAreSumsOfRegions) {
    EXPECT_EQ(sizes_below(with({4, 2})), (std::vector<std::string>{"1GiB", "512MiB"}));
    EXPECT_EQ(sizes_below(with({4})), (std::vector<std::string>{"none"}));
}

}  // namespace
}  // namespace memtide::fm

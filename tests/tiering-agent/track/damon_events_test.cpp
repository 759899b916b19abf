#include "tiering-agent/track/damon_events.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Of Linux 6.12.
constexpr std::string_view kFormat =
    "name: damon_aggregated\nID: 734\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:unsigned long target_id;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int nr_regions;\toffset:16;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long start;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long end;\toffset:32;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int nr_accesses;\toffset:40;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned int age;\toffset:44;\tsize:4;\tsigned:0;\n\n"
    "print fmt: \"target_id=%lu nr_regions=%u %lu-%lu: %u %u\", REC->target_id, REC->nr_regions, REC->start, "
    "REC->end, REC->nr_accesses, REC->age\n";

template <typename Number>
void put(std::vector<std::byte>& raw, std::size_t offset, Number value) {
    std::memcpy(raw.data() + offset, &value, sizeof value);
}

TEST(DamonEventLayout, DecodesWhatTheFormatSays) {
    const auto layout = DamonEventLayout::parse(kFormat);
    ASSERT_TRUE(layout) << layout.error().message;
    std::vector<std::byte> raw(52);
    put(raw, 16, std::uint32_t{7});
    put(raw, 24, std::uint64_t{0x7f0000000000});
    put(raw, 32, std::uint64_t{0x7f0000004000});
    put(raw, 40, std::uint32_t{3});
    const auto event = layout->decode(raw);
    ASSERT_TRUE(event) << event.error().message;
    EXPECT_EQ(event->regions_in_all, 7U);
    EXPECT_EQ(event->region, (DamonRegion{.begin = 0x7f0000000, .end = 0x7f0000004, .accesses = 3}));
    EXPECT_EQ(layout->decode(std::span(raw).first(43)).error().code, ErrorCode::kProtocol);
}

TEST(DamonEventLayout, AnotherKernelsFormatIsRefusedByTheNameOfTheField) {
    const auto without = [](std::string_view what, std::string_view by) {
        std::string format(kFormat);
        format.replace(format.find(what), what.size(), by);
        return DamonEventLayout::parse(format);
    };
    EXPECT_THAT(without(" nr_accesses;", " accesses;").error().message, HasSubstr("nr_accesses"));
    EXPECT_THAT(without("offset:24;\tsize:8;", "offset:24;\tsize:4;").error().message, HasSubstr("start"));
    EXPECT_THAT(without("offset:32;", "offset:;").error().message, HasSubstr("end"));
    EXPECT_FALSE(DamonEventLayout::parse(""));
}

DamonEvent event(std::uint64_t begin, std::uint64_t end, std::uint32_t accesses, std::uint32_t in_all) {
    return {.region = {begin, end, accesses}, .regions_in_all = in_all};
}

TEST(DamonAggregation, IsCompleteWithItsLastRegion) {
    DamonAggregation aggregation;
    aggregation.add(event(10, 20, 1, 2));
    EXPECT_FALSE(aggregation.is_complete());
    aggregation.add(event(20, 30, 0, 2));
    ASSERT_TRUE(aggregation.is_complete());
    aggregation.add(event(10, 20, 4, 2));
    EXPECT_THAT(aggregation.regions(), ElementsAre(DamonRegion{10, 20, 1}, DamonRegion{20, 30, 0}));
}

// Who begins to listen in the middle of one has its end, and then all of the next.
TEST(DamonAggregation, AnIncompleteOneIsGivenUpForTheNext) {
    DamonAggregation aggregation;
    aggregation.add(event(20, 30, 9, 3));
    aggregation.add(event(30, 40, 9, 3));
    aggregation.add(event(10, 20, 1, 3));
    aggregation.add(event(20, 30, 2, 3));
    EXPECT_FALSE(aggregation.is_complete());
    aggregation.add(event(30, 40, 3, 3));
    ASSERT_TRUE(aggregation.is_complete());
    EXPECT_EQ(aggregation.regions().front().accesses, 1U);
}

TEST(DamonAggregation, WhatWasLostOrHasAnotherNumberBeginsAnew) {
    DamonAggregation aggregation;
    aggregation.add(event(10, 20, 1, 2));
    aggregation.clear();
    aggregation.add(event(20, 30, 1, 2));
    EXPECT_FALSE(aggregation.is_complete());
    aggregation.add(event(30, 40, 1, 3));
    EXPECT_EQ(aggregation.regions().size(), 1U);
    aggregation.add(event(10, 20, 1, 0));
    EXPECT_FALSE(aggregation.is_complete()) << "no aggregation has no regions";
}

TEST(RegionCursor, FindsTheRegionOfEachPage) {
    const std::vector<DamonRegion> regions{{10, 20, 1}, {30, 40, 2}};
    RegionCursor cursor(regions);
    EXPECT_EQ(cursor.find(5), nullptr);
    EXPECT_EQ(cursor.find(10)->accesses, 1U);
    EXPECT_EQ(cursor.find(19)->accesses, 1U);
    EXPECT_EQ(cursor.find(20), nullptr);
    EXPECT_EQ(cursor.find(35)->accesses, 2U);
    EXPECT_EQ(cursor.find(40), nullptr);
    EXPECT_EQ(RegionCursor({}).find(1), nullptr);
}

}  // namespace
}  // namespace memtide::agent

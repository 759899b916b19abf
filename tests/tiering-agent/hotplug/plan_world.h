#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tiering-agent/hotplug/plan.h"

// What the planner's tests look at: one composition of one memdev, and the steps on its way.
namespace memtide::agent {

inline constexpr SerialNumber kSerial{0x4d54000100000001};
inline constexpr SerialNumber kForeignSerial{0x99};
inline constexpr Bytes kSize = mebibytes(256);
inline constexpr Bytes kBlock = mebibytes(128);
inline constexpr std::uint64_t kStart = 0x3d0000000;
inline constexpr std::uint64_t kFirstBlock = kStart / (128ULL << 20);
inline const RegionId kId{CompositionId{"c-1"}, 0};
inline const WallTime kNow{std::chrono::sys_days{std::chrono::year{2030} / 1 / 1}};

inline Desired wanting(Want want) {
    return {.revision = 3, .regions = {{.id = kId, .serials = {kSerial}, .size = kSize, .want = want}}};
}

inline Memdev memdev(std::string name = "mem0", SerialNumber serial = kSerial) {
    return {.name = std::move(name),
            .serial = serial,
            .ram_size = kSize,
            .has_endpoint = true,
            .free_decoder = "decoder3.0",
            .ram_windows = {{.name = "decoder0.0", .largest_free = gibibytes(4), .ways = 1}}};
}

inline MemoryBlock block(std::uint64_t index, BlockState state, bool movable) {
    return {.index = index, .state = state, .movable = movable, .node = 1};
}

inline Region region_of(std::string memdev) {
    return {.name = "region0",
            .window = "decoder0.0",
            .range = {kStart, kSize.value},
            .committed = true,
            .enabled = true,
            .targets = {{"decoder3.0", std::move(memdev)}},
            .dax = {{.name = "dax0.0", .driver = "kmem", .range = {kStart, kSize.value}}}};
}

inline Region region_with_blocks(BlockState state, bool movable) {
    Region region = region_of("mem0");
    region.blocks = {block(kFirstBlock, state, movable), block(kFirstBlock + 1, state, movable)};
    return region;
}

inline Seen seeing(std::vector<Memdev> memdevs, std::vector<Region> regions = {},
                   std::vector<RegionRecord> records = {}) {
    return {.memdevs = std::move(memdevs),
            .regions = std::move(regions),
            .records = std::move(records),
            .block_size = kBlock};
}

inline RegionPlan plan_one(const Desired& desired, const Seen& seen, const Notes& notes = {}) {
    const Plan plan = make_plan(desired, seen, notes, kNow);
    EXPECT_EQ(plan.regions.size(), 1U);
    return plan.regions.at(0);
}

inline void expect_action(const RegionPlan& plan, ActionKind kind) {
    ASSERT_TRUE(plan.next.has_value());
    EXPECT_EQ(to_string(plan.next->kind), to_string(kind));
}

inline std::string error_code(const RegionPlan& plan) {
    return plan.observed.error ? plan.observed.error->code : "";
}

}  // namespace memtide::agent

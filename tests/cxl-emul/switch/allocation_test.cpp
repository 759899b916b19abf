#include "cxl-emul/switch/allocation.h"

#include <vector>

#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

constexpr Bytes kUnit = mebibytes(256);
const std::vector<Slice> kFour{{{0}, kUnit}, {kUnit, kUnit}, {kUnit * 2, kUnit}, {kUnit * 3, kUnit}};

TEST(Allocation, LdsWhoseSizeStaysKeepTheirSlice) {
    const auto slices = allocate(kFour, kUnit * 4, 0, std::vector<Bytes>{kUnit, {0}, kUnit});
    ASSERT_TRUE(slices);
    EXPECT_EQ(*slices, (std::vector<Slice>{{{0}, kUnit}, {}, {kUnit * 2, kUnit}, {kUnit * 3, kUnit}}));
}

TEST(Allocation, MemoryThatOneGivesUpGoesToAnotherInTheSameStep) {
    const auto slices = allocate(kFour, kUnit * 4, 0, std::vector<Bytes>{kUnit * 2, {0}});
    ASSERT_TRUE(slices);
    EXPECT_EQ((*slices)[0], (Slice{{0}, kUnit * 2}));
}

TEST(Allocation, PiecesThatAreNotContiguousAreNotGiven) {
    const auto freed = allocate(kFour, kUnit * 4, 0, std::vector<Bytes>{{0}, kUnit, {0}, kUnit});
    ASSERT_TRUE(freed);
    EXPECT_FALSE(allocate(*freed, kUnit * 4, 0, std::vector<Bytes>{kUnit * 2}));
    EXPECT_TRUE(allocate(*freed, kUnit * 4, 0, std::vector<Bytes>{kUnit}));
}

TEST(Allocation, MoreThanTheDeviceHasIsNotGiven) {
    EXPECT_FALSE(allocate(kFour, kUnit * 4, 0, std::vector<Bytes>{kUnit * 2}));
    EXPECT_FALSE(allocate(kFour, kUnit * 4, 0, std::vector<Bytes>{kUnit * 5, {0}, {0}, {0}}));
}

}  // namespace
}  // namespace memtide::emul

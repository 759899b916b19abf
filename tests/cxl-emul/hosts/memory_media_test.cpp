#include "cxl-emul/hosts/memory_media.h"

#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

TEST(MemoryMedia, IsZeroUntilItIsWritten) {
    MemoryMedia media("dev", gibibytes(1));
    EXPECT_EQ(media.read(mebibytes(5)), 0U);
    EXPECT_FALSE(media.first_written({}, gibibytes(1)).has_value());
    media.write(mebibytes(5), 42);
    EXPECT_EQ(media.read(mebibytes(5)), 42U);
    EXPECT_EQ(media.first_written({}, gibibytes(1)), mebibytes(5));
    EXPECT_FALSE(media.first_written(mebibytes(6), mebibytes(100)).has_value());
}

TEST(MemoryMedia, AnEraseTakesItsRangeAndNoMore) {
    MemoryMedia media("dev", gibibytes(1));
    for (const std::uint64_t at : {0, 256, 511, 512}) media.write(mebibytes(at), 1 + at);
    EraseControl control;
    EXPECT_TRUE(media.erase(mebibytes(256), mebibytes(256), control).has_value());
    EXPECT_EQ(control.percent, 100U);
    EXPECT_EQ(media.read(mebibytes(0)), 1U);
    EXPECT_EQ(media.read(mebibytes(256)), 0U);
    EXPECT_EQ(media.read(mebibytes(511)), 0U);
    EXPECT_EQ(media.read(mebibytes(512)), 513U);
}

TEST(MemoryMedia, ABrokenOneKeepsWhatItHas) {
    MemoryMedia media("dev", gibibytes(1));
    media.write({}, 1);
    media.break_erase(true);
    EraseControl control;
    EXPECT_FALSE(media.erase({}, gibibytes(1), control).has_value());
    EXPECT_EQ(media.read({}), 1U);
    media.break_erase(false);
    EXPECT_TRUE(media.erase({}, gibibytes(1), control).has_value());
    EXPECT_EQ(media.read({}), 0U);
}

TEST(MemoryMedia, AnIgnoredEraseSucceedsAndLeavesEverything) {
    MemoryMedia media("dev", gibibytes(1));
    media.write(mebibytes(1), 7);
    EXPECT_FALSE(media.first_kept({}, gibibytes(1)).has_value()) << "nobody said that it was gone";
    media.ignore_erase(true);
    EraseControl control;
    EXPECT_TRUE(media.erase({}, gibibytes(1), control).has_value());
    EXPECT_EQ(control.percent, 100U);
    EXPECT_EQ(media.read(mebibytes(1)), 7U);
    EXPECT_EQ(media.first_kept({}, gibibytes(1)), mebibytes(1));
    EXPECT_FALSE(media.first_kept(mebibytes(2), mebibytes(2)).has_value());
    media.write(mebibytes(1), 8);
    EXPECT_FALSE(media.first_kept({}, gibibytes(1)).has_value()) << "written since";
    media.ignore_erase(false);
    EXPECT_TRUE(media.erase({}, gibibytes(1), control).has_value());
    EXPECT_FALSE(media.first_written({}, gibibytes(1)).has_value());
}

TEST(MemoryMedia, SaysWhoHoldsWhatSomebodyElseIsToHold) {
    MemoryMedia media("dev", gibibytes(1));
    const HostId one("one");
    const HostId two("two");
    EXPECT_FALSE(media.hold({0, 4096}, one).has_value());
    EXPECT_FALSE(media.hold({2048, 4096}, one).has_value()) << "its own";
    EXPECT_FALSE(media.hold({4096, 8192}, two).has_value());
    EXPECT_EQ(media.hold({4000, 4096}, two), one);
    media.let_go({0, 4096}, one);
    EXPECT_EQ(media.hold({0, 8192}, one), two);
}

}  // namespace
}  // namespace memtide::emul

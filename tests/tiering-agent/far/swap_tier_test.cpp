// What of swap can be tested without any: the truth is in tiering_qemu.
#include <array>
#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/tiering-agent/observe/fake_tree.h"
#include "tiering-agent/far/far_tier.h"
#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {
namespace {

using testing::HasSubstr;

TEST(SwapTier, WithoutSwapThereIsNoneAndWhatToDoIsSaid) {
    const FakeTree tree;
    tree.put("proc/meminfo", "MemTotal: 1000 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n");
    const auto room = make_swap_tier(tree.files())->room();
    ASSERT_FALSE(room.has_value());
    EXPECT_EQ(room.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(room.error().message, HasSubstr("swapon"));
    tree.put("proc/meminfo", "MemTotal: 1000 kB\n");
    EXPECT_FALSE(make_swap_tier(tree.files())->room().has_value()) << "a kernel without swap";
}

TEST(SwapTier, TellsItsRoomAndWhatOfItIsMemory) {
    const FakeTree tree;
    tree.put("proc/meminfo",
             "SwapTotal:       2048 kB\nSwapFree:        1024 kB\nZswap:            10 kB\nZswapped:         "
             "40 kB\n");
    tree.put("proc/swaps",
             "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram1                              "
             "partition\t1024\t\t"
             "512\t\t100\n/swapfile file 1024 0 -2\n");
    tree.put("sys/block/zram1/mm_stat",
             "   40960    9000    10240        0    10240        0        0        0\n");
    const auto room = make_swap_tier(tree.files())->room();
    ASSERT_TRUE(room.has_value()) << room.error().message;
    EXPECT_EQ(
        *room,
        (FarRoom{
            .capacity = mebibytes(2), .free = mebibytes(1), .kept = Bytes{81'920}, .taken = Bytes{20'480}}));
    EXPECT_DOUBLE_EQ(room->gain(), 0.75);
    EXPECT_DOUBLE_EQ(FarRoom{}.gain(), 1) << "nothing of it is memory";
    EXPECT_DOUBLE_EQ((FarRoom{.kept = Bytes{10}, .taken = Bytes{20}}).gain(), 0);
}

// On this machine, with pages of this process. It may have swap or none.
class OwnPages : public testing::Test {
  protected:
    static constexpr std::size_t kCount = 16;
    OwnPages() {
        void* const mapped =
            ::mmap(nullptr, kCount << kPageShift, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) throw std::runtime_error("mmap");
        memory_ = static_cast<char*>(mapped);
        std::memset(memory_, 42, kCount << kPageShift);
        first_ = reinterpret_cast<std::uint64_t>(mapped) >> kPageShift;
        const auto stat = parse_stat(files_.read("proc/self/stat").value());
        self_ = {stat->pid, stat->start_time};
    }
    ~OwnPages() override { ::munmap(memory_, kCount << kPageShift); }

    Files files_;
    std::unique_ptr<FarTier> tier_ = make_swap_tier(files_);
    char* memory_ = nullptr;
    std::uint64_t first_ = 0;
    ProcessId self_{};
};

TEST_F(OwnPages, EachHasAnOutcomeAndKeepsItsData) {
    std::vector<FarUnit> units;
    for (std::size_t i = 0; i < kCount; i += 3) units.push_back({first_ + i, 1});
    const auto outcomes = tier_->page_out(self_, units);
    if (!outcomes && outcomes.error().code != ErrorCode::kNotFound)
        GTEST_SKIP() << "not allowed here: " << outcomes.error().message;
    ASSERT_TRUE(outcomes.has_value()) << outcomes.error().message;
    ASSERT_EQ(outcomes->size(), units.size());
    for (const FarTier::Outcome& outcome : *outcomes) EXPECT_EQ(outcome.taken == 1, outcome.error == 0);
    for (std::size_t i = 0; i < kCount << kPageShift; ++i) ASSERT_EQ(memory_[i], 42);
}

TEST_F(OwnPages, WhatIsLockedStays) {
    // Not mlock(2): the sanitizers make nothing of it.
    if (::syscall(SYS_mlock, memory_, 4 << kPageShift) != 0) GTEST_SKIP() << "mlock is not allowed here";
    const auto outcomes = tier_->page_out(self_, std::array{FarUnit{first_ + 1, 1}, FarUnit{first_ + 2, 1}});
    if (!outcomes) GTEST_SKIP() << "not allowed here: " << outcomes.error().message;
    for (const FarTier::Outcome& outcome : *outcomes)
        EXPECT_EQ(outcome, (FarTier::Outcome{.taken = 0, .error = EINVAL}));
}

TEST_F(OwnPages, AnotherProcessWithItsPidIsNotTouched) {
    ProcessId other = self_;
    ++other.start_time;
    const auto outcomes = tier_->page_out(other, std::array{FarUnit{first_, 1}});
    ASSERT_FALSE(outcomes.has_value());
    EXPECT_EQ(outcomes.error().code, ErrorCode::kNotFound);
    EXPECT_FALSE(tier_->find(other, std::array{first_}).has_value());
}

TEST_F(OwnPages, OneThatHasEndedIsNotFound) {
    constexpr int kNobody = 4'194'305;  // above PID_MAX_LIMIT
    const auto outcomes = tier_->page_out({kNobody, 1}, std::array{FarUnit{first_, 1}});
    ASSERT_FALSE(outcomes.has_value());
    EXPECT_EQ(outcomes.error().code, ErrorCode::kNotFound);
}

TEST_F(OwnPages, AreFoundWhereTheyAre) {
    ::madvise(memory_ + (5 << kPageShift), 1 << kPageShift, MADV_DONTNEED);
    const auto where = tier_->find(self_, std::array{first_, first_ + 5, first_ + 7});
    ASSERT_TRUE(where.has_value()) << where.error().message;
    EXPECT_EQ(*where, (std::vector{FarTier::Where::kHere, FarTier::Where::kNowhere, FarTier::Where::kHere}));
}

}  // namespace
}  // namespace memtide::agent

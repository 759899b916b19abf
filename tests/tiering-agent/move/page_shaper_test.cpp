// With huge pages of this process, where this machine has some.
#include "tiering-agent/move/page_shaper.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/track/page_map.h"

namespace memtide::agent {
namespace {

constexpr std::size_t kHugeSize = std::size_t{kPagesPerHuge} << kPageShift;

class OwnHugePage : public testing::Test {
  protected:
    void SetUp() override {
        void* const mapped =
            ::mmap(nullptr, 2 * kHugeSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
        mapped_ = mapped;
        const auto begin = (reinterpret_cast<std::uint64_t>(mapped) + kHugeSize - 1) / kHugeSize * kHugeSize;
        memory_ = reinterpret_cast<unsigned char*>(begin);
        page_ = begin >> kPageShift;
        const auto stat = parse_stat(files_.read("proc/self/stat").value());
        self_ = {stat->pid, stat->start_time};
        ::madvise(memory_, kHugeSize, MADV_HUGEPAGE);
        for (std::size_t i = 0; i < kHugeSize; ++i) memory_[i] = static_cast<unsigned char>(i * 7 % 251);
        if (!is_huge()) GTEST_SKIP() << "this machine gave no huge page, or does not tell (Linux 6.7)";
    }
    ~OwnHugePage() override {
        if (mapped_ != nullptr) ::munmap(mapped_, 2 * kHugeSize);
    }
    [[nodiscard]] bool is_huge() const {
        auto map = PageMap::open(files_, self_.pid);
        if (!map) return false;
        const auto runs = map->populated({page_ << kPageShift, (page_ << kPageShift) + kHugeSize});
        return runs && !runs->empty() && runs->front().huge;
    }
    [[nodiscard]] bool is_unchanged() const {
        for (std::size_t i = 0; i < kHugeSize; ++i)
            if (memory_[i] != static_cast<unsigned char>(i * 7 % 251)) return false;
        return true;
    }

    Files files_;
    std::unique_ptr<PageShaper> shaper_ = make_page_shaper(files_);
    void* mapped_ = nullptr;
    unsigned char* memory_ = nullptr;
    std::uint64_t page_ = 0;
    ProcessId self_{};
};

TEST_F(OwnHugePage, IsSplitAndMadeWholeAgain) {
    const auto split = shaper_->split(self_, page_);
    if (!split && split.error().code == ErrorCode::kPermission) GTEST_SKIP() << split.error().message;
    ASSERT_TRUE(split.has_value()) << split.error().message;
    EXPECT_FALSE(is_huge());
    EXPECT_TRUE(is_unchanged());
    const auto joined = shaper_->join(self_, page_);
    ASSERT_TRUE(joined.has_value()) << joined.error().message;
    EXPECT_TRUE(is_huge());
    EXPECT_TRUE(is_unchanged());
}

TEST_F(OwnHugePage, StaysWholeWhenItIsLocked) {
    // Not mlock(2): the sanitizers make nothing of it.
    if (::syscall(SYS_mlock, memory_, kHugeSize) != 0) GTEST_SKIP() << "mlock is not allowed here";
    const auto split = shaper_->split(self_, page_);
    ASSERT_FALSE(split.has_value());
    if (split.error().code == ErrorCode::kPermission) GTEST_SKIP() << split.error().message;
    EXPECT_EQ(split.error().code, ErrorCode::kConflict);
    EXPECT_TRUE(is_huge());
}

TEST_F(OwnHugePage, OfAProcessThatIsAnotherByNowIsNotTouched) {
    ProcessId other = self_;
    ++other.start_time;
    EXPECT_EQ(shaper_->split(other, page_).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(shaper_->join(other, page_).error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(is_huge());
}

TEST_F(OwnHugePage, WhatIsUnmappedCannotBeMadeWhole) {
    ::munmap(memory_, kHugeSize);
    const auto joined = shaper_->join(self_, page_);
    ASSERT_FALSE(joined.has_value());
    ::mmap(memory_, kHugeSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

}  // namespace
}  // namespace memtide::agent

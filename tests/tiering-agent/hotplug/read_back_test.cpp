// Reading memory back before its first use: what is read, what it means, and that nothing dirty goes online.
#include "tiering-agent/hotplug/read_back.h"

#include <csignal>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/tiering-agent/hotplug/agent_on_fake_kernel.h"

namespace memtide::agent {
namespace {

const auto kNever = [] { return false; };

// --- Which pages ---

TEST(SampleOffsets, HaveTheFirstAndTheLastPageAndOneOfEachStretch) {
    for (const std::uint64_t seed : {0ULL, 1ULL, 4711ULL}) {
        const auto offsets = sample_offsets(mebibytes(256), 64, seed);
        ASSERT_EQ(offsets.size(), 64U);
        EXPECT_EQ(offsets.front(), 0U);
        EXPECT_EQ(offsets.back(), mebibytes(256).value - kSampledPage);
        const std::uint64_t stretch = mebibytes(4).value;
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            EXPECT_EQ(offsets[i] % kSampledPage, 0U);
            EXPECT_EQ(offsets[i] / stretch, i);
        }
    }
    EXPECT_NE(sample_offsets(mebibytes(256), 64, 1), sample_offsets(mebibytes(256), 64, 2));
}

TEST(SampleOffsets, OfLittleMemoryAreAllOfIt) {
    EXPECT_EQ(sample_offsets({3 * kSampledPage}, 100, 1),
              (std::vector<std::uint64_t>{0, kSampledPage, 2 * kSampledPage}));
    EXPECT_EQ(sample_offsets({7 * kSampledPage}, 5, 9).size(), 5U);
    EXPECT_EQ(sample_offsets({kSampledPage}, 1, 9), std::vector<std::uint64_t>{0});
    EXPECT_TRUE(sample_offsets({}, 5, 9).empty());
}

// --- What they hold ---

class ReadBackTest : public testing::Test {
  protected:
    static constexpr std::uint64_t kPages = 64;

    ReadBackTest() { fill(kPages, std::string(kPages * kSampledPage, '\0')); }
    void fill(std::uint64_t pages, const std::string& bytes) {
        std::ofstream(path_, std::ios::binary) << bytes;
        job_.device = path_;
        job_.size = {pages * kSampledPage};
        job_.offsets = sample_offsets(job_.size, pages, 1);
    }
    void put(std::uint64_t at, char byte) {
        std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(at));
        file.put(byte);
    }

    ScratchFolder folder_;
    std::string path_ = folder_.path() + "/memory";
    ReadBackJob job_;
};

TEST_F(ReadBackTest, ZerosAreClean) {
    const auto found = read_back(job_, kNever);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(*found, (ReadBack{.pages = kPages}));
    EXPECT_TRUE(found->is_clean());
}

TEST_F(ReadBackTest, OneByteIsFoundWhereverItIsInASampledPage) {
    for (const std::uint64_t at : std::vector<std::uint64_t>{0, 4095, 4096 + 13, kPages * kSampledPage - 1}) {
        put(at, 'x');
        const auto found = read_back(job_, kNever);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->dirty, 1U);
        EXPECT_EQ(found->offset, at);
        EXPECT_FALSE(found->unreadable);
        put(at, '\0');
    }
}

TEST_F(ReadBackTest, UniformMediaMayHoldAnyOneByte) {
    fill(kPages, std::string(kPages * kSampledPage, '\xff'));
    EXPECT_EQ(read_back(job_, kNever)->dirty, 1U);
    job_.pattern = ErasedPattern::kUniform;
    EXPECT_TRUE(read_back(job_, kNever)->is_clean());
    put(5000, '\xfe');
    const auto found = read_back(job_, kNever);
    EXPECT_EQ(found->dirty, 1U);
    EXPECT_EQ(found->offset, 5000U);
}

TEST_F(ReadBackTest, OfAnInterleavedRegionTheMemdevIsNamedWhoseTurnItIs) {
    job_.interleave = {.ways = 4, .granularity = 1024};
    put(3 * kSampledPage + 2 * 1024 + 7, 'x');
    EXPECT_EQ(read_back(job_, kNever)->dirty, 1U << 2);
    put(9 * kSampledPage, 'x');
    const auto found = read_back(job_, kNever);
    EXPECT_EQ(found->dirty, 1U << 2 | 1U << 0);
    EXPECT_EQ(found->offset, 3 * kSampledPage + 2 * 1024 + 7) << "the first of them";
    EXPECT_EQ(found->pages, kPages) << "the others may be dirty too";
}

// A file that ends before its mapping gives the same signal as a poisoned page.
TEST_F(ReadBackTest, PageThatCannotBeReadIsAnAnswerAndDoesNotEndTheAgent) {
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(10 * kSampledPage)), 0);
    const auto found = read_back(job_, kNever);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_TRUE(found->unreadable);
    EXPECT_EQ(found->offset, 10 * kSampledPage);
    EXPECT_EQ(found->dirty, 1U);
    EXPECT_FALSE(found->is_clean());
}

TEST_F(ReadBackTest, UnreadablePageOfAnInterleavedRegionConcernsAllWhoHaveAPieceOfIt) {
    ASSERT_EQ(truncate(path_.c_str(), 0), 0);
    job_.interleave = {.ways = 2, .granularity = 256};
    EXPECT_EQ(read_back(job_, kNever)->dirty, 3U);
    job_.interleave = {.ways = 2, .granularity = 4096};
    EXPECT_EQ(read_back(job_, kNever)->dirty, 1U);
}

TEST_F(ReadBackTest, InterruptionEndsItWithoutAnAnswer) {
    const auto found = read_back(job_, [] { return true; });
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().code, ErrorCode::kCancelled);
}

TEST_F(ReadBackTest, DeviceThatIsNotThereIsAnError) {
    job_.device += ".other";
    EXPECT_EQ(read_back(job_, kNever).error().code, ErrorCode::kNotFound);
}

// --- The agent ---

class VerifyingAgent : public AgentOnFakeKernel {
  protected:
    static Desired verified(Want want = Want::kOnline, std::vector<SerialNumber> serials = {kSerial}) {
        Desired desired{.revision = 1,
                        .regions = {{.id = kId,
                                     .serials = serials,
                                     .size = mebibytes(256) * serials.size(),
                                     .want = want,
                                     .verify = Verification{.samples = 8}}}};
        return desired;
    }
    void dirty_at(std::uint64_t offset) { kernel_.contents["dax0.0"] = {{offset, "secret"}}; }
    void expect_no_trace() {
        EXPECT_TRUE(kernel_.autoprobe);
        EXPECT_FALSE(records_->holds_autoprobe());
        EXPECT_TRUE(kernel_.devdax_names.empty());
        expect_nothing_left();
        EXPECT_TRUE(records_->used().empty());
    }
};

TEST_F(VerifyingAgent, ErasedMemoryGoesOnlineAndIsReportedVerified) {
    kernel_.auto_online = FakeKernel::AutoOnline::kMovable;
    kernel_.plug("mem0", kSerial);
    const auto observed = run(verified());
    EXPECT_EQ(observed.status, RegionStatus::kOnline);
    EXPECT_EQ(observed.verified_pages, 8U);
    EXPECT_TRUE(observed.not_erased.empty());
    EXPECT_TRUE(kernel_.devdax_names.empty());
    EXPECT_TRUE(kernel_.autoprobe);
    EXPECT_EQ(run(verified(Want::kOffline)).status, RegionStatus::kOffline);
    expect_no_trace();
}

TEST_F(VerifyingAgent, MemoryThatWasNotErasedNeverGoesOnline) {
    kernel_.auto_online = FakeKernel::AutoOnline::kMovable;
    kernel_.plug("mem0", kSerial);
    dirty_at(mebibytes(256).value - 6);
    const auto observed = run(verified());
    EXPECT_EQ(observed.status, RegionStatus::kFailed);
    ASSERT_TRUE(observed.error.has_value());
    EXPECT_EQ(observed.error->code, "not-erased");
    EXPECT_NE(observed.error->detail.find("0xffffffa"), std::string::npos) << observed.error->detail;
    EXPECT_EQ(observed.not_erased, std::vector{kSerial});
    EXPECT_EQ(observed.verified_pages, 0U);
    EXPECT_TRUE(kernel_.blocks().empty());
    EXPECT_EQ(kernel_.regions.at("region0").dax_driver, "") << "nobody can map it";
    crash();
    EXPECT_EQ(run(verified()).not_erased, std::vector{kSerial})
        << "also after a restart, without reading again";
    EXPECT_EQ(run(verified(Want::kOffline)).status, RegionStatus::kOffline);
    expect_no_trace();
}

TEST_F(VerifyingAgent, OfAnInterleavedRegionOnlyTheDirtyMemdevIsNamed) {
    kernel_.plug("mem0", {1});
    kernel_.plug("mem1", {2});
    dirty_at(256);
    const auto observed = run(verified(Want::kOnline, {{1}, {2}}));
    EXPECT_EQ(observed.status, RegionStatus::kFailed);
    EXPECT_EQ(observed.not_erased, std::vector<SerialNumber>{{2}});
}

TEST_F(VerifyingAgent, WithoutTheWishNothingIsRead) {
    kernel_.plug("mem0", kSerial);
    dirty_at(0);
    const auto observed = run(wanting(Want::kOnline));
    EXPECT_EQ(observed.status, RegionStatus::kOnline);
    EXPECT_EQ(observed.verified_pages, 0U);
}

TEST_F(VerifyingAgent, WhatThisHostWroteIsNotHeldAgainstTheMemory) {
    kernel_.plug("mem0", kSerial);
    EXPECT_EQ(run(verified()).status, RegionStatus::kOnline);
    dirty_at(0);
    kernel_.pull("mem0");
    run(verified());
    kernel_.plug("mem0", kSerial);  // its link was down for a moment
    const auto observed = run(verified());
    EXPECT_EQ(observed.status, RegionStatus::kOnline);
    EXPECT_TRUE(observed.not_erased.empty());
}

TEST_F(VerifyingAgent, MemoryThatKmemHadFirstIsOnlineAndNotCalledVerified) {
    kernel_.plug("mem0", kSerial);
    dirty_at(0);
    run(wanting(Want::kOnline));  // as an agent does that does not know of verifying
    crash();
    const auto observed = run(verified());
    EXPECT_EQ(observed.status, RegionStatus::kOnline);
    EXPECT_EQ(observed.verified_pages, 0U);
    EXPECT_TRUE(warned("not-read-back"));
}

TEST_F(VerifyingAgent, MemoryThatCannotBeReadBackStaysOffAndSaysWhy) {
    kernel_.plug("mem0", kSerial);
    kernel_.faults["device_dax/new_id"] = {ErrorCode::kNotFound, -1};
    const auto observed = run(verified());
    EXPECT_EQ(observed.status, RegionStatus::kFailed);
    EXPECT_EQ(observed.error->code, "read-back-failed");
    EXPECT_TRUE(observed.not_erased.empty());
    EXPECT_TRUE(kernel_.blocks().empty());
    kernel_.faults.clear();
    EXPECT_EQ(run(verified()).status, RegionStatus::kOnline);
}

TEST_F(VerifyingAgent, KilledAtAnyWriteItGoesOnAndNothingDirtyEverGoesOnline) {
    for (const bool dirty : {false, true})
        for (const bool after : {false, true})
            for (int writes = 0; writes < 36; ++writes) {
                SCOPED_TRACE(testing::Message() << (dirty ? "dirty" : "clean") << ", killed "
                                                << (after ? "after" : "before") << " write " << writes);
                kernel_.contents.clear();
                if (dirty) dirty_at(0);
                kernel_.plug("mem0", kSerial);
                kernel_.writes_until_killed = writes;
                kernel_.killed_after_the_write = after;
                try {
                    run(verified());
                    run(verified(Want::kOffline));
                } catch (const Killed&) {
                }
                kernel_.writes_until_killed = -1;
                EXPECT_TRUE(!dirty || kernel_.blocks().empty());
                crash();
                const auto observed = run(verified());
                EXPECT_EQ(observed.status, dirty ? RegionStatus::kFailed : RegionStatus::kOnline);
                EXPECT_EQ(observed.not_erased.empty(), !dirty);
                EXPECT_TRUE(!dirty || kernel_.blocks().empty());
                EXPECT_TRUE(kernel_.autoprobe);
                EXPECT_EQ(run(verified(Want::kOffline)).status, RegionStatus::kOffline);
                expect_no_trace();
                if (HasFailure()) return;
                kernel_.pull("mem0");
            }
}

}  // namespace
}  // namespace memtide::agent

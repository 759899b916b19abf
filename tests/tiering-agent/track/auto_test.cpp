// Which of two made-up trackers each process is watched by.
#include <gtest/gtest.h>

#include "tests/tiering-agent/track/made_up_tracker.h"

namespace memtide::agent {
namespace {

using std::chrono::milliseconds;

class Auto : public testing::Test {
  protected:
    // One window; whether what it saw counts.
    bool window(int pid) {
        if (auto begun = tracker_->begin(pid, {.length = milliseconds(10)}); !begun) return false;
        bool counts = false;
        const auto look = tracker_->look(pid, {}, {}, [&](std::uint64_t, std::span<const PageSeen> seen) {
            counts = seen.front().windows > 0;
        });
        present_ = look ? look->present_pages : 0;
        anew_ += look && look->begins_anew ? 1 : 0;
        return counts;
    }
    MadeUp* writes_ = new MadeUp(false);
    MadeUp* accesses_ = new MadeUp(true);
    std::unique_ptr<Tracker> tracker_ =
        make_auto_tracker(std::unique_ptr<Tracker>(writes_), std::unique_ptr<Tracker>(accesses_), 0.02);
    std::uint64_t present_ = 0;
    int anew_ = 0;
};

TEST_F(Auto, ReadersAreWatchedByAccessesAndWritersByWrites) {
    writes_->touched = 10;
    accesses_->touched = 1'000;
    for (int i = 0; i < 20; ++i) window(1);
    constexpr int kTrials = 3;
    EXPECT_EQ(writes_->begun, 2 + kTrials);
    EXPECT_EQ(accesses_->begun, 18 - kTrials);
    EXPECT_EQ(anew_, 1) << "what writes showed is forgotten";
    writes_->touched = 1'000;
    for (int i = 0; i < 20; ++i) window(2);
    EXPECT_EQ(writes_->begun, 20);
    EXPECT_EQ(accesses_->begun, 20);
}

TEST_F(Auto, TrialsTellNothingOfHeatAndOfThePace) {
    writes_->touched = accesses_->touched = 1'000;
    int trials = 0;
    for (int i = 0; i < 100; ++i)
        if (!window(1)) {
            ++trials;
            EXPECT_EQ(present_, 0U);
        }
    EXPECT_GE(trials, 6);
    EXPECT_LE(trials, 8);
    EXPECT_EQ(anew_, 0);
}

TEST_F(Auto, WhereOneCannotTheOtherDoes) {
    accesses_->error = ErrorCode::kConflict;
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(window(1));
    EXPECT_EQ(writes_->begun, 10);
    accesses_->error = ErrorCode::kNotFound;
    int ended = 0;
    for (int i = 0; i < 10; ++i) ended += window(1) ? 0 : 1;
    EXPECT_GT(ended, 0) << "who has ended has ended for both";
}

TEST_F(Auto, WaitsForTheLongerWindow) {
    ASSERT_TRUE(tracker_->begin(1, {.length = milliseconds(10)}));
    EXPECT_EQ(tracker_->duration(milliseconds(10)), milliseconds(10));
    EXPECT_FALSE(tracker_->is_sharp());
    ASSERT_TRUE(tracker_->look(1, {}, {}, [](std::uint64_t, std::span<const PageSeen>) {}));
    ASSERT_TRUE(tracker_->begin(1, {.length = milliseconds(10)}));
    EXPECT_EQ(accesses_->begun, 1);
    EXPECT_EQ(tracker_->duration(milliseconds(10)), milliseconds(40));
    EXPECT_TRUE(tracker_->is_sharp());
}

TEST_F(Auto, AWindowThatWasNotBegunIsNone) {
    EXPECT_EQ(tracker_->look(1, {}, {}, [](std::uint64_t, std::span<const PageSeen>) {}).error().code,
              ErrorCode::kNotFound);
}

}  // namespace
}  // namespace memtide::agent

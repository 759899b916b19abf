// Who is watched by what he consented to, and who is not: two made-up trackers.
#include <gtest/gtest.h>

#include "tests/tiering-agent/track/made_up_tracker.h"

namespace memtide::agent {
namespace {

class Consent : public testing::Test {
  protected:
    Result<Look> window(int pid, std::chrono::microseconds disturbance = {}) {
        auto begun = tracker_->begin(pid, {.disturbance = disturbance});
        if (!begun) return std::unexpected(begun.error());
        return tracker_->look(pid, {}, {}, [](std::uint64_t, std::span<const PageSeen>) {});
    }
    MadeUp* consented_ = new MadeUp(false);
    MadeUp* rest_ = new MadeUp(true);
    std::unique_ptr<Tracker> tracker_ =
        make_consent_tracker(std::unique_ptr<Tracker>(consented_), std::unique_ptr<Tracker>(rest_), 0.02);
};

TEST_F(Consent, WhoHasConsentedIsWatchedSoAndTheOthersAreNot) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(window(1));
    EXPECT_EQ(consented_->begun, 5);
    EXPECT_EQ(rest_->begun, 0);
    consented_->error = ErrorCode::kUnavailable;
    EXPECT_TRUE(window(2));
    EXPECT_EQ(rest_->begun, 1);
}

TEST_F(Consent, WhoIsGoneIsNotWatchedInAnotherWay) {
    consented_->error = ErrorCode::kNotFound;
    EXPECT_EQ(window(1).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(rest_->begun, 0);
}

TEST_F(Consent, WhatAnotherWaySawIsForgottenWithIt) {
    consented_->error = ErrorCode::kUnavailable;
    EXPECT_FALSE(window(1)->begins_anew);
    consented_->error.reset();
    EXPECT_TRUE(window(1)->begins_anew);
    EXPECT_FALSE(window(1)->begins_anew);
}

TEST_F(Consent, WhoWouldPayTooMuchForItIsWatchedInTheOtherWayForAWhile) {
    window(1);
    // Of 2 % of its time it would take more than a minute.
    window(1, std::chrono::seconds(2));
    EXPECT_EQ(rest_->begun, 1);
    int windows = 0;
    while (rest_->begun == windows + 1 && windows < 1'000) {
        window(1);
        ++windows;
    }
    EXPECT_GE(windows, 8);
    EXPECT_LT(windows, 100);
    EXPECT_EQ(consented_->begun, 2);
}

TEST_F(Consent, AWindowIsAsLongAsWhoeverIsInItNeeds) {
    using std::chrono::milliseconds;
    EXPECT_EQ(tracker_->duration(milliseconds(10)), milliseconds(10));
    window(1);
    EXPECT_EQ(tracker_->duration(milliseconds(10)), milliseconds(10));
    EXPECT_FALSE(tracker_->is_sharp());
    consented_->error = ErrorCode::kUnavailable;
    window(1);
    EXPECT_EQ(tracker_->duration(milliseconds(10)), milliseconds(40));
    EXPECT_TRUE(tracker_->is_sharp());
}

TEST_F(Consent, WithoutAnotherWayNothingIsSeenOfWhoHasNot) {
    auto* const consented = new MadeUp(false);
    consented->error = ErrorCode::kUnavailable;
    consented->touched = 7;
    tracker_ = make_consent_tracker(std::unique_ptr<Tracker>(consented), nullptr, 0.02);
    EXPECT_EQ(window(1)->present_pages, 0U);
    consented->error.reset();
    EXPECT_EQ(window(1)->touched_pages, 7U);
}

}  // namespace
}  // namespace memtide::agent

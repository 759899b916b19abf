#include "tiering-agent/policy/huge_pages.h"

#include <array>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Pair kTiers{.fast = 0, .slow = 1};
constexpr std::uint64_t kGroup = 100;  // the first of the tests
constexpr std::uint64_t first_of(std::uint64_t group) { return (kGroup + group) * kPagesPerHuge; }

// Touches that fall on so many parts alike: how many are different.
unsigned different_parts(std::mt19937& random, unsigned touches, unsigned parts) {
    std::bitset<kPagesPerHuge> seen;
    for (unsigned i = 0; i < touches; ++i) seen.set(random() % parts);
    return static_cast<unsigned>(seen.count());
}

TEST(SurelySkewed, HardlyEverWhereManyPartsAreTouched) {
    std::mt19937 random(5);
    int wrong = 0;
    for (int i = 0; i < 1'000; ++i)
        for (const unsigned parts : {HugePages::kMostParts, 128U, 512U})
            wrong += is_surely_skewed(64, different_parts(random, 64, parts), HugePages::kMostParts) ? 1 : 0;
    EXPECT_LE(wrong, 10);
}

TEST(SurelySkewed, TheFewerPartsTheSooner) {
    std::mt19937 random(5);
    const auto share = [&](unsigned touches, unsigned parts) {
        int found = 0;
        for (int i = 0; i < 1'000; ++i)
            found += is_surely_skewed(touches, different_parts(random, touches, parts), 64) ? 1 : 0;
        return found / 1'000.0;
    };
    EXPECT_EQ(share(16, 1), 1);
    EXPECT_GE(share(16, 8), 0.99);
    EXPECT_GE(share(64, 32), 0.9);
    EXPECT_FALSE(is_surely_skewed(1, 1, 64)) << "one touch tells nothing";
    EXPECT_FALSE(is_surely_skewed(0, 0, 64));
}

class HugePagesOf : public testing::Test {
  protected:
    // A window sees the huge page in a tier, touched or not.
    void see_whole(std::uint64_t group, std::uint8_t tier, bool touched) {
        const std::vector<PageSeen> seen(
            kPagesPerHuge, PageSeen{.tier = tier, .touched = std::uint8_t{touched}, .huge = true});
        heat_.observe(first_of(group), seen);
    }
    // Its parts, of which the first `warm` are touched.
    void see_parts(std::uint64_t group, std::uint8_t tier, std::size_t warm, std::uint8_t tier_of_last) {
        std::vector<PageSeen> seen(kPagesPerHuge, PageSeen{.tier = tier});
        for (std::size_t i = 0; i < warm; ++i) seen[i].touched = 1;
        seen.back().tier = tier_of_last;
        heat_.observe(first_of(group), seen);
    }
    void see_parts(std::uint64_t group, std::uint8_t tier, std::size_t warm) {
        see_parts(group, tier, warm, tier);
    }
    // A window in which each part of `parts` was touched alike, and one of them is seen.
    void touch(std::uint64_t group, unsigned parts, int windows) {
        for (int i = 0; i < windows; ++i) {
            const std::array page{first_of(group) + random_() % parts};
            huge_.note_touched(page);
        }
    }
    std::vector<std::uint64_t> to_split(std::size_t most = 10) {
        return huge_.to_split(heat_, kTiers, {}, most, now_);
    }
    std::vector<std::uint64_t> to_join() { return huge_.to_join(heat_, {}, 10, now_); }
    void split(std::uint64_t group) {
        huge_.note_split(first_of(group), true, now_);
        for (int i = 0; i < 4; ++i) see_parts(group, 0, 1);
        huge_.follow(heat_, now_);
    }

    HeatMap heat_;
    HugePages huge_;
    HugePages::Time now_{std::chrono::hours(1)};
    std::mt19937 random_{3};
};

TEST_F(HugePagesOf, HotForAFewPartsAreSplitTheSlowOnesFirst) {
    for (int i = 0; i < 20; ++i) {
        see_whole(0, 0, true);
        see_whole(1, 1, true);
        see_whole(2, 1, true);   // all of it is touched
        see_whole(3, 1, false);  // cold by now
        see_whole(4, 2, true);   // of another pair
    }
    for (const std::uint64_t group : {0, 1, 3, 4}) touch(group, 2, 20);
    touch(2, kPagesPerHuge, 64);
    huge_.follow(heat_, now_);
    EXPECT_THAT(to_split(), ElementsAre(first_of(1), first_of(0)));
    EXPECT_THAT(to_split(1), ElementsAre(first_of(1)));
}

TEST_F(HugePagesOf, AFewMoreWindowsAreWantedUntilTheyAreJudged) {
    EXPECT_EQ(huge_.undecided(), 0U);
    const std::array both{first_of(0), first_of(1)};
    for (int i = 0; i < 15; ++i) huge_.note_touched(both);
    EXPECT_EQ(huge_.undecided(), 2U);
    touch(1, kPagesPerHuge, 1);
    EXPECT_EQ(huge_.undecided(), 0U) << "the other was not touched, and is not waited for";
    huge_.note_touched(both);
    EXPECT_EQ(huge_.undecided(), 0U);
}

TEST_F(HugePagesOf, AVerdictFollowsTheLoad) {
    for (int i = 0; i < 20; ++i) see_whole(0, 0, true);
    touch(0, 2, 64);
    EXPECT_THAT(to_split(), ElementsAre(first_of(0)));
    touch(0, kPagesPerHuge, 64);
    EXPECT_THAT(to_split(), IsEmpty());
}

TEST_F(HugePagesOf, WhatTheKernelKeepsWholeIsLeftAlone) {
    for (int i = 0; i < 20; ++i) see_whole(0, 0, true);
    touch(0, 1, 20);
    huge_.note_split(first_of(0), false, now_);
    touch(0, 1, 20);
    huge_.follow(heat_, now_);
    EXPECT_THAT(to_split(), IsEmpty());
    now_ += HugePages::kLeftAlone;
    huge_.follow(heat_, now_);
    EXPECT_THAT(to_split(), ElementsAre(first_of(0)));
}

TEST_F(HugePagesOf, WhatTheKernelMadeWholeIsNotSplitAgainAtOnce) {
    split(0);
    EXPECT_TRUE(huge_.is_split(first_of(0) + 7));
    for (int i = 0; i < 20; ++i) see_whole(0, 0, true);
    huge_.follow(heat_, now_);
    EXPECT_FALSE(huge_.is_split(first_of(0)));
    touch(0, 1, 20);
    EXPECT_THAT(to_split(), IsEmpty());
}

TEST_F(HugePagesOf, PartsThatAreAlikeAreMadeWholeAfterAWhile) {
    for (std::uint64_t group = 0; group < 5; ++group) split(group);
    for (int i = 0; i < 100; ++i) {
        see_parts(0, 1, 0);                  // all of it is cold
        see_parts(1, 0, kPagesPerHuge - 9);  // most of it is warm
        see_parts(2, 0, 10);                 // a little of it is
        see_parts(3, 0, 0, 1);               // not all of it is in one tier
        see_parts(4, 0, 0, PageHeat::kNowhere);
        see_parts(5, 0, 0);  // never was a huge page, as far as is known
    }
    EXPECT_THAT(to_join(), IsEmpty());
    now_ += HugePages::kLeastSplit;
    EXPECT_THAT(to_join(), ElementsAre(first_of(0), first_of(1)));
    huge_.note_joined(first_of(0), true, now_);
    huge_.note_joined(first_of(1), false, now_);
    EXPECT_THAT(to_join(), IsEmpty());
    EXPECT_FALSE(huge_.is_split(first_of(0)));
}

TEST_F(HugePagesOf, NothingIsKeptOfWhatIsGone) {
    const std::size_t before = huge_.memory();
    for (int i = 0; i < 20; ++i) see_whole(0, 0, true);
    touch(0, 1, 20);
    EXPECT_GT(huge_.memory(), before);
    heat_.forget(0, UINT64_MAX);
    huge_.follow(heat_, now_);
    EXPECT_EQ(huge_.memory(), before);
}

TEST_F(HugePagesOf, WarmPagesOfTheSlowerTierAreCounted) {
    for (int i = 0; i < 20; ++i) {
        see_whole(0, 0, true);
        see_whole(1, 1, true);
        see_whole(2, 1, false);
        see_parts(3, 1, 7);
    }
    const std::array spaces{Space{.id = 1, .heat = &heat_}};
    EXPECT_EQ(warm_slow_pages(spaces, kTiers, {}), kPagesPerHuge + 7U);
}

}  // namespace
}  // namespace memtide::agent

// On the page faults of memory that nobody has touched before.
#include "tiering-agent/track/first_touches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/track/toucher.h"

namespace memtide::agent {
namespace {

using testing::UnorderedElementsAre;

class FirstTouchesOf : public testing::Test {
  protected:
    static constexpr std::uint64_t kGroups = 8;
    void SetUp() override {
        auto opened = FirstTouches::open();
        if (!opened) GTEST_SKIP() << opened.error().message;
        touches_.emplace(*std::move(opened));
    }
    // Page of a group that is all one's own.
    [[nodiscard]] std::uint64_t in_group(std::uint64_t group, std::uint64_t page = 0) const {
        return group_number(group) * kPagesPerHuge + page - one_.first_page();
    }
    [[nodiscard]] std::uint64_t group_number(std::uint64_t group) const {
        return one_.first_page() / kPagesPerHuge + 1 + group;
    }

    FirstTouches::Early end(const Toucher& of, std::uint64_t most_pages) {
        const std::vector<VirtualRange> ranges{of.memory()};
        return touches_->end(of.pid(), ranges, most_pages);
    }

    Toucher one_{(kGroups + 2) * kPagesPerHuge};
    Toucher other_{64};
    std::optional<FirstTouches> touches_;
};

TEST_F(FirstTouchesOf, ThoseThatCameFirstUpToSomePages) {
    one_.touch(in_group(7));
    touches_->begin(one_.pid());
    for (const std::uint64_t group : {5, 2, 6, 0}) one_.touch(in_group(group, 3));
    const auto early = end(one_, 2 * kPagesPerHuge);
    EXPECT_THAT(early.groups, UnorderedElementsAre(group_number(5), group_number(2)))
        << "7 was before the window, 6 and 0 came later";
    EXPECT_THAT(early.pages, UnorderedElementsAre(group_number(5) * kPagesPerHuge + 3,
                                                  group_number(2) * kPagesPerHuge + 3));
}

TEST_F(FirstTouchesOf, PagesOfAGroupCountAsOne) {
    touches_->begin(one_.pid());
    for (const std::uint64_t page : {9, 8, 7}) one_.touch(in_group(1, page));
    one_.touch(in_group(3));
    const auto early = end(one_, 2 * kPagesPerHuge);
    EXPECT_THAT(early.groups, UnorderedElementsAre(group_number(1), group_number(3)));
    EXPECT_EQ(early.pages.size(), 4U);
}

TEST_F(FirstTouchesOf, TheFirstCountsHoweverFewAreWanted) {
    touches_->begin(one_.pid());
    one_.touch(in_group(1));
    one_.touch(in_group(2));
    EXPECT_THAT(end(one_, 1).groups, UnorderedElementsAre(group_number(1)));
}

TEST_F(FirstTouchesOf, OfEachGroupTheVeryFirstPageIsKnown) {
    touches_->begin(one_.pid());
    for (const std::uint64_t page : {9, 8}) one_.touch(in_group(1, page));
    one_.touch(in_group(3, 5));
    const auto early = end(one_, 1);
    EXPECT_THAT(early.first_pages,
                UnorderedElementsAre(std::pair(group_number(1), group_number(1) * kPagesPerHuge + 9),
                                     std::pair(group_number(3), group_number(3) * kPagesPerHuge + 5)));
}

TEST_F(FirstTouchesOf, OfGroupsOfSmallPagesSinglePagesCount) {
    touches_->begin(one_.pid());
    one_.touch(in_group(1, 9));
    one_.touch(in_group(1, 8));
    one_.touch(in_group(3, 5));
    one_.touch(in_group(1, 7));
    const std::vector<VirtualRange> ranges{one_.memory()};
    const auto early = touches_->end(one_.pid(), ranges, 3, {group_number(1), group_number(3)});
    const std::uint64_t first = group_number(1) * kPagesPerHuge;
    EXPECT_THAT(early.pages, UnorderedElementsAre(first + 9, first + 8, group_number(3) * kPagesPerHuge + 5));
}

TEST_F(FirstTouchesOf, EachProcessHasAWindowOfItsOwn) {
    touches_->begin(one_.pid());
    other_.touch(1);  // not in its window
    touches_->begin(other_.pid());
    one_.touch(in_group(4));
    other_.touch(9);
    EXPECT_THAT(end(other_, UINT64_MAX).pages, UnorderedElementsAre(other_.first_page() + 9));
    EXPECT_THAT(end(one_, UINT64_MAX).groups, UnorderedElementsAre(group_number(4)));
    EXPECT_TRUE(end(one_, UINT64_MAX).pages.empty()) << "its window is over";
}

TEST_F(FirstTouchesOf, AWindowThatWasNotEndedIsForgottenWithTheNext) {
    touches_->begin(one_.pid());
    touches_->begin(other_.pid());
    one_.touch(in_group(1));
    (void)end(other_, UINT64_MAX);
    touches_->begin(other_.pid());
    EXPECT_TRUE(end(one_, UINT64_MAX).pages.empty());
}

// A great many page faults of others: the ring is full, and the first ones are there.
TEST_F(FirstTouchesOf, WhatComesFirstIsKeptWhenThereAreTooMany) {
    const std::uint64_t many = 40'000;
    const Toucher busy(many);
    touches_->begin(one_.pid());
    one_.touch(in_group(2));
    for (std::uint64_t page = 0; page < many; ++page) busy.touch(page);
    EXPECT_THAT(end(one_, UINT64_MAX).groups, UnorderedElementsAre(group_number(2)));
}

}  // namespace
}  // namespace memtide::agent

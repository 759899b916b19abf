#include "tiering-agent/policy/heat_history.h"

#include <chrono>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

using Cell = HeatHistory::Cell;
using std::chrono::seconds;

constexpr std::uint64_t kBase = 0x7f0000000;
constexpr PageSeen kTouched{.tier = 0, .touched = true};
constexpr PageSeen kUntouched{.tier = 0};
constexpr PageSeen kSlow{.tier = 1};

class History : public testing::Test {
  protected:
    // One look at pages that are all alike, and time for a column.
    void look(std::uint64_t page, PageSeen seen, std::size_t count = 8) {
        history_.observe(page, std::vector(count, seen));
    }
    void end(seconds after = HeatHistory::kShortestColumn) {
        now_ += after;
        history_.end_look(now_);
    }
    HeatHistory history_;
    HeatHistory::Time now_{std::chrono::hours(1)};
};

TEST_F(History, AColumnHasTheSharesOfItsLooks) {
    history_.end_look(now_);
    history_.observe(kBase, std::vector{kTouched, kUntouched, kSlow, kSlow});
    history_.observe(kBase + 512 * 9, std::vector{kTouched, PageSeen{}});
    history_.end_look(now_ + seconds(1));
    EXPECT_TRUE(history_.columns().empty()) << "it is being made";
    history_.observe(kBase, std::vector{kTouched, kTouched, kTouched, kSlow});
    history_.observe(kBase + 512 * 9, std::vector{kTouched, PageSeen{}});
    end();
    const auto rows = history_.rows();
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].begin, kBase);
    EXPECT_EQ(rows[0].end, kBase + 512);
    EXPECT_EQ(rows[1].begin, kBase + 512 * 9) << "the gap between them is no row";
    ASSERT_EQ(rows[0].cells.size(), 1U);
    EXPECT_EQ(rows[0].cells[0], (Cell{Cell::kMost / 2, (3 * Cell::kMost + 4) / 8}));
    EXPECT_EQ(rows[1].cells[0], (Cell{Cell::kMost, 0}));
}

TEST_F(History, WhatIsNotThereIsAbsentAndInTheEndNoRow) {
    history_.end_look(now_);
    look(kBase, kTouched);
    end();
    look(kBase + 512, kTouched);
    end();
    auto rows = history_.rows();
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_TRUE(rows[0].cells[1].is_absent());
    EXPECT_TRUE(rows[1].cells[0].is_absent());
    for (int column = 0; column < 2'000; ++column) {
        look(kBase + 512, kTouched);
        end(HeatHistory::kLongestColumn);
    }
    rows = history_.rows();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].begin, kBase + 512);
}

TEST_F(History, LongTimesMakeLongColumns) {
    history_.end_look(now_);
    const auto began = now_;
    for (int column = 0; column < 100; ++column) {
        look(kBase, column < 20 ? kTouched : kUntouched);
        end();
    }
    const auto& columns = history_.columns();
    ASSERT_LE(columns.size(), HeatHistory::kMostColumns);
    ASSERT_GE(columns.size(), HeatHistory::kMostColumns / 2);
    EXPECT_EQ(columns.front(), began) << "nothing is lost";
    EXPECT_TRUE(std::ranges::is_sorted(columns));
    const auto cells = history_.rows().at(0).cells;
    ASSERT_EQ(cells.size(), columns.size());
    EXPECT_EQ(cells.front().touched, Cell::kMost);
    EXPECT_EQ(cells[9].touched, Cell::kMost);
    EXPECT_EQ(cells[10].touched, 0);
    EXPECT_EQ(cells.back().touched, 0);
}

TEST_F(History, IsBoundedWhateverTheSpaceDoes) {
    history_.end_look(now_);
    for (int column = 0; column < 20; ++column) {
        for (std::uint64_t group = 0; group < 3'000; ++group)
            look(kBase + (group * 37 + static_cast<std::uint64_t>(column)) * 512, kSlow);
        end();
    }
    const auto rows = history_.rows();
    EXPECT_LE(rows.size(), HeatHistory::kMostRows);
    EXPECT_GT(rows.size(), HeatHistory::kMostRows / 4);
    EXPECT_LT(history_.memory(), 64U << 10);
    for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_GE(rows[i].begin, rows[i - 1].end);
    for (const Cell cell : rows.front().cells) EXPECT_TRUE(cell.is_absent() || cell.slow == Cell::kMost);
}

}  // namespace
}  // namespace memtide::agent

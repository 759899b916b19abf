#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {

// A picture of one address space over time, for people: which parts of it were touched when, and which were
// in a slower tier. Bounded whatever the space does: columns of time become twice as long, and rows of
// addresses twice as large, when there are too many of them; from kLongestColumn on the oldest columns go.
// Not thread safe.
class HeatHistory {
  public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr std::size_t kMostColumns = 64;
    static constexpr std::size_t kMostRows = 256;
    static constexpr std::chrono::seconds kShortestColumn{2};
    static constexpr std::chrono::seconds kLongestColumn{64};

    // Of a look, as HeatMap::observe().
    void observe(std::uint64_t page, std::span<const PageSeen> seen);
    // The look is complete.
    void end_look(Time now);

    struct Cell {
        static constexpr std::uint8_t kMost = 254;
        static constexpr std::uint8_t kAbsent = 255;  // nothing was there
        // Of what was there, the share that a window saw touched, and that was in a slower tier; of kMost.
        std::uint8_t touched = kAbsent;
        std::uint8_t slow = kAbsent;

        [[nodiscard]] bool is_absent() const { return touched == kAbsent; }
        friend bool operator==(const Cell&, const Cell&) = default;
    };
    // Pages from `begin` to `end`, of which some were present. Neighbours in the list may lie far apart.
    struct Row {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::vector<Cell> cells{};  // as many as there are columns
    };
    [[nodiscard]] std::vector<Row> rows() const;
    // When each column began, the oldest first.
    [[nodiscard]] const std::vector<Time>& columns() const { return columns_; }

    // What it takes itself, in bytes.
    [[nodiscard]] std::size_t memory() const;

  private:
    struct Part {
        std::array<Cell, kMostColumns> cells{};
        // Of the column that is being made.
        std::uint64_t present = 0;
        std::uint64_t touched = 0;
        std::uint64_t slow = 0;
    };
    void end_column();
    void double_rows();
    void double_columns();
    void drop_oldest_column();

    std::map<std::uint64_t, Part> parts_;  // by page >> shift_
    unsigned shift_ = 9;                   // a group of HeatMap
    std::vector<Time> columns_;            // that are complete
    Time began_{};                         // the one that is being made
    bool has_begun_ = false;
    std::chrono::seconds span_ = kShortestColumn;
};

}  // namespace memtide::agent

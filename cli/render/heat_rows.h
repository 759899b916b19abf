#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

namespace memtide::cli {

// The picture of one process, as /v1/heat has it.
struct HeatRows {
    struct Cell {
        int touched = -1;  // percent; -1: nothing was there
        int slow = 0;      // percent of what was there, in a slower tier

        [[nodiscard]] bool is_absent() const { return touched < 0; }
        [[nodiscard]] bool is_slow() const { return slow > 50; }
        friend bool operator==(const Cell&, const Cell&) = default;
    };
    struct Row {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::vector<Cell> cells{};  // as many as there are columns
    };
    std::string title{};
    double oldest_seconds = 0;  // when the first column began, ago
    std::size_t columns = 0;
    std::vector<Row> rows{};  // ascending
};

HeatRows heat_rows_of(const boost::json::value& process);
// So many rows at most: neighbours that lie close together become one.
void squeeze(HeatRows& heat, std::size_t most_rows);

}  // namespace memtide::cli

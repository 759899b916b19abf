#pragma once

#include <span>
#include <string>
#include <string_view>

namespace memtide::fm {

// One code that clients may be sent. docs/rest.md has the same rows, and openapi.json the same codes; a test
// holds all of them to this table, and this table to the codes in the sources.
struct ProblemRow {
    std::string_view code;
    unsigned status;           // that goes with it; 0: it comes with several
    std::string_view meaning;  // a clause
    std::string_view remedy;   // what a client or an operator should do
};

std::span<const ProblemRow> problem_table();

// "| `code` | 400 | meaning | remedy |": the row of docs/rest.md.
std::string markdown_row(const ProblemRow& row);

}  // namespace memtide::fm

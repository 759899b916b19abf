#pragma once

#include <string>
#include <vector>

namespace memtide {

// Rows under headings, each column as wide as its widest cell on a terminal; a heading that starts with '>'
// aligns its column to the right, for numbers.
class Table {
  public:
    explicit Table(std::vector<std::string> headings);
    void add(std::vector<std::string> cells);  // as many as there are headings
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    [[nodiscard]] std::string text() const;

  private:
    std::vector<std::string> headings_;
    std::vector<bool> right_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace memtide

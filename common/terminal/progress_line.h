#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace memtide {

// What is being waited for, on standard error: one line that rewrites itself on a terminal, no longer than
// its window is wide; a line for each change elsewhere.
class ProgressLine {
  public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(const std::string& text);
    // A line of its own, which stays.
    void note(const std::string& text);

  private:
    void erase() const;

    bool terminal_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::string last_;
};

}  // namespace memtide

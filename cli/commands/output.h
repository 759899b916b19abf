#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "common/base/error.h"

namespace memtide::cli {

// Answers go to standard output (tables, or JSON with --json); everything said meanwhile to standard error.
class Output {
  public:
    explicit Output(bool json) : json_(json) {}

    [[nodiscard]] bool json() const { return json_; }
    void text(const std::string& text) const;
    void value(const boost::json::value& value) const;  // one line
    // "memtide: MESSAGE" on standard error; answers the exit code for it.
    [[nodiscard]] int failure(const Error& error) const;

  private:
    bool json_;
};

// What is being waited for: one line that rewrites itself on a terminal, a line for each change elsewhere.
class ProgressLine {
  public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(const std::string& text);

  private:
    void erase() const;

    bool terminal_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::string last_;
};

}  // namespace memtide::cli

#pragma once

#include <string_view>

#include <boost/json/value.hpp>

#include "cli/client/failure.h"

namespace memtide::cli {

// Answers go to standard output (tables, or JSON with --json), each at once; everything said meanwhile to
// standard error.
class Output {
  public:
    explicit Output(bool json) : json_(json) {}

    [[nodiscard]] bool json() const { return json_; }
    void text(std::string_view text);
    void value(const boost::json::value& value);  // one line
    // Whether standard output still takes what is written. Once it does not, nothing more is tried.
    [[nodiscard]] bool is_open() const { return write_error_ == 0; }

    // "memtide: MESSAGE" on standard error and, for programs, the problem document as the answer. Each of
    // these answers the exit code for it.
    [[nodiscard]] int failure(const Failure& failure);
    // The same when the answer has been given, or there is none to give.
    [[nodiscard]] int complaint(std::string_view message) const;
    // What was typed makes no sense; `command` is whose --help has more ("" for the program's own).
    [[nodiscard]] int wrong_usage(std::string_view message, std::string_view command) const;
    // The exit code of a command that ended with `code`: failure, and said so, when its answer did not get
    // through. A reader that has seen enough (`| head`) is not a failure.
    [[nodiscard]] int close(int code) const;

  private:
    bool json_;
    int write_error_ = 0;  // errno
};

}  // namespace memtide::cli

#pragma once

#include <string>

namespace memtide::cli {

// As long as it lives, SIGINT and SIGTERM write `notice` to standard error and end the process with 128 + the
// signal's number, as shells do. A signal that the caller has ignored stays so. One at a time.
class InterruptNotice {
  public:
    explicit InterruptNotice(const std::string& notice);
    ~InterruptNotice();
    InterruptNotice(const InterruptNotice&) = delete;
    InterruptNotice& operator=(const InterruptNotice&) = delete;
};

}  // namespace memtide::cli

#pragma once

#include <string>

#include "common/base/error.h"

namespace memtide::agent {

// One tiering agent a machine: two would undo each other's moves, and take each other's monitors away. Given
// up by the kernel when the process ends, however it ends.
class MachineLock {
  public:
    static constexpr const char* kPath = "/run/memtide-tiering.lock";

    // kAlreadyExists while another process has it, with its pid.
    static Result<MachineLock> take(const std::string& path = kPath);
    ~MachineLock();
    MachineLock(MachineLock&& other) noexcept;
    MachineLock& operator=(MachineLock&&) = delete;

  private:
    explicit MachineLock(int file) : file_(file) {}
    int file_;
};

}  // namespace memtide::agent

#pragma once

#include <string>

namespace memtide::agent {

// What a QEMU that no longer answers is doing, for the log: the end of its guest's console, each thread's
// name, state and kernel function, and whether its monitor still answers. `supervisor_pid` names the file
// with its parent's pid.
std::string where_qemu_stands(const std::string& supervisor_pid, const std::string& host_folder);

}  // namespace memtide::agent

#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// pidfd_open(2) and pidfd_send_signal(2). The header of glibc 2.36 declares them as C++ functions, which do
// not exist.
namespace memtide::process {

inline int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)); }

inline int signal_pidfd(int pidfd, int signal) {
    return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U));
}

}  // namespace memtide::process

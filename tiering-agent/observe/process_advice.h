#pragma once

#include <cstddef>
#include <span>

#include <sys/uio.h>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/processes.h"

namespace memtide::agent {

// Advice about the memory of another process: process_madvise(2). Of one process, which stays the same one
// however soon its pid is another's. Not thread safe.
class ProcessAdvice {
  public:
    // kNotFound: it has ended, or another one has its pid; kUnavailable: a kernel before Linux 5.3.
    static Result<ProcessAdvice> open(const Files& files, ProcessId process);
    ~ProcessAdvice();
    ProcessAdvice(ProcessAdvice&& other) noexcept;
    ProcessAdvice& operator=(ProcessAdvice&&) = delete;

    // It stops at the first range with which something is wrong.
    struct Done {
        std::size_t bytes = 0;
        int error = 0;  // why no more; 0 when the kernel does not say
    };
    // `ranges`: 1024 at most. kNotFound: it has ended; kUnavailable: a kernel before Linux 5.10; kPermission:
    // without CAP_SYS_NICE.
    Result<Done> advise(std::span<const iovec> ranges, int advice);

  private:
    explicit ProcessAdvice(int file) : file_(file) {}
    int file_;
};

}  // namespace memtide::agent

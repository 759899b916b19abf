#include "tiering-agent/observe/process_advice.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/process/pidfd.h"

namespace memtide::agent {

Result<ProcessAdvice> ProcessAdvice::open(const Files& files, ProcessId process) {
    const int file = process::open_pidfd(process.pid);
    if (file < 0) {
        if (errno == ESRCH || errno == EINVAL) return fail(ErrorCode::kNotFound, "the process has ended");
        if (errno == ENOSYS)
            return fail(ErrorCode::kUnavailable, "this kernel has no pidfd_open (Linux 5.3)");
        return fail_errno("open", fmt::format("process {}", process.pid), errno);
    }
    ProcessAdvice advice(file);
    // The pidfd is of whoever had the pid when it was opened; who was there before and still is, is him.
    if (auto same = check_same(files, process); !same) return std::unexpected(same.error());
    return advice;
}

ProcessAdvice::~ProcessAdvice() {
    if (file_ >= 0) ::close(file_);
}

ProcessAdvice::ProcessAdvice(ProcessAdvice&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

Result<ProcessAdvice::Done> ProcessAdvice::advise(std::span<const iovec> ranges, int advice) {
    const long advised = ::syscall(SYS_process_madvise, file_, ranges.data(), ranges.size(), advice, 0U);
    if (advised >= 0) return Done{.bytes = static_cast<std::size_t>(advised), .error = 0};
    if (errno == ESRCH) return fail(ErrorCode::kNotFound, "the process has ended");
    if (errno == ENOSYS)
        return fail(ErrorCode::kUnavailable, "this kernel has no process_madvise (Linux 5.10)");
    if (errno == EPERM) return fail(ErrorCode::kPermission, "process_madvise needs CAP_SYS_NICE");
    return Done{.bytes = 0, .error = errno};
}

}  // namespace memtide::agent

#include "tiering-agent/app/machine_lock.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace memtide::agent {

Result<MachineLock> MachineLock::take(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) return fail_errno("open", path, errno);
    MachineLock lock(file);
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return fail_errno("lock", path, errno);
        std::array<char, 16> text{};
        const ssize_t got = ::pread(file, text.data(), text.size(), 0);
        std::string pid(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        while (pid.ends_with('\n')) pid.pop_back();
        return fail(ErrorCode::kAlreadyExists,
                    fmt::format("another tiering agent moves pages on this machine (pid {})",
                                pid.empty() ? "unknown" : pid));
    }
    const std::string pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, pid.data(), pid.size(), 0) < 0)
        return fail_errno("write", path, errno);
    return lock;
}

MachineLock::~MachineLock() {
    if (file_ >= 0) ::close(file_);
}

MachineLock::MachineLock(MachineLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

}  // namespace memtide::agent

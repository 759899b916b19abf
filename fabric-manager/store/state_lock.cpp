#include "fabric-manager/store/state_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace memtide::fm {

namespace {

Result<> lock_exclusively(const File& file, const std::string& path, const std::string& when_taken) {
    while (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno == EWOULDBLOCK)
            return fail(ErrorCode::kConflict, fmt::format("lock {}: {}", path, when_taken));
        return std::unexpected(file_error("lock", path, errno));
    }
    return {};
}

}  // namespace

Result<StateLock> StateLock::take(const StatePaths& paths) {
    Result<File> name = open_file(paths.lock(), O_RDWR | O_CREAT);
    if (!name) return std::unexpected(name.error());
    if (Result<> ok = lock_exclusively(
            *name, paths.lock(),
            fmt::format("another fabric manager has the state file {} open; stop that one or use another "
                        "state file",
                        paths.database));
        !ok)
        return std::unexpected(ok.error());
    StateLock lock(*std::move(name));
    if (file_exists(paths.database))
        if (Result<> ok = lock.take_file(paths); !ok) return std::unexpected(ok.error());
    return lock;
}

Result<> StateLock::take_file(const StatePaths& paths) {
    struct stat held{};
    if (file_.is_open() && fstat(file_.fd(), &held) == 0 &&
        identity_of(paths.database) == FileIdentity{held.st_dev, held.st_ino})
        return {};
    Result<File> file = open_file(paths.database, O_RDONLY);
    if (!file) return std::unexpected(file.error());
    if (Result<> ok = lock_exclusively(
            *file, paths.database,
            fmt::format("another fabric manager has the state file {} open by another of its names (a hard "
                        "link, a mount); stop that one or use another state file",
                        paths.database));
        !ok)
        return ok;
    file_ = *std::move(file);
    return {};
}

Result<> check_only_name(const StatePaths& paths) {
    struct stat info{};
    if (::stat(paths.database.c_str(), &info) != 0 || info.st_nlink < 2 || !paths.logs().empty()) return {};
    return fail(
        ErrorCode::kConflict,
        fmt::format("state file {} has {} names (hard links), and its log is not beside this one: use "
                    "the name with which it was made, or a copy (memtide-fabric-manager restore)",
                    paths.database, info.st_nlink));
}

}  // namespace memtide::fm

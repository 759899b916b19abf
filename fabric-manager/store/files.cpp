#include "fabric-manager/store/files.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_owner.h"

namespace memtide::fm {

namespace fs = std::filesystem;

void File::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

namespace {

// What is in the way of somebody who may not: usually that it is another user's.
std::string whose(const std::string& path) {
    std::string owner = owner_of(path);
    if (owner.empty()) owner = owner_of(fs::absolute(path).parent_path().string());
    return fmt::format(
        " (the manager needs to read and write the file and its folder; it belongs to user {})",
        owner.empty() ? "unknown" : owner);
}

}  // namespace

Error file_error(std::string_view action, const std::string& path, int error_number) {
    const std::string text =
        fmt::format("{} {}: {}", action, path, std::generic_category().message(error_number));
    switch (error_number) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
            return {ErrorCode::kExhausted, text + " (make room on its disk; nothing was lost)"};
        case EROFS:
            return {ErrorCode::kPermission,
                    text + " (its file system is read-only; the manager goes on when it can be written to)"};
        case EACCES:
        case EPERM:
            return {ErrorCode::kPermission, text + whose(path)};
        case ENOENT:
            return {ErrorCode::kNotFound, text + " (does its folder exist?)"};
        default:
            return {ErrorCode::kIo, text};
    }
}

Result<File> open_file(const std::string& path, int flags) {
    // Nobody has put a link where we make a file.
    if ((flags & O_CREAT) != 0) flags |= O_NOFOLLOW;
    File file(::open(path.c_str(), flags | O_CLOEXEC, 0640));
    if (!file.is_open()) return std::unexpected(file_error("open", path, errno));
    return file;
}

Result<std::string> read_file(const std::string& path) {
    Result<File> file = open_file(path, O_RDONLY);
    if (!file) return std::unexpected(file.error());
    struct stat info{};
    if (fstat(file->fd(), &info) != 0) return std::unexpected(file_error("look at", path, errno));
    std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::read(file->fd(), bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return std::unexpected(file_error("read", path, errno));
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    bytes.resize(done);
    return bytes;
}

Result<> write_all(const File& file, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(file.fd(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return std::unexpected(file_error("write", path, errno));
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

Result<> sync_file(const std::string& path) {
    Result<File> file = open_file(path, O_RDONLY);
    if (!file) return std::unexpected(file.error());
    if (fsync(file->fd()) != 0) return std::unexpected(file_error("sync", path, errno));
    return {};
}

Result<> sync_folder_of(const std::string& path) {
    return sync_file(fs::absolute(path).parent_path().string());
}

Result<> copy_file(const std::string& from, const std::string& to) {
    Result<File> in = open_file(from, O_RDONLY);
    if (!in) return std::unexpected(in.error());
    Result<File> out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC);
    if (!out) return std::unexpected(out.error());
    std::string buffer(1 << 20, '\0');
    for (;;) {
        const ssize_t n = ::read(in->fd(), buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return std::unexpected(file_error("read", from, errno));
        if (n == 0) break;
        if (Result<> ok = write_all(*out, {buffer.data(), static_cast<std::size_t>(n)}, to); !ok) return ok;
    }
    if (fsync(out->fd()) != 0) return std::unexpected(file_error("sync", to, errno));
    return {};
}

Result<> rename_durably(const std::string& from, const std::string& to) {
    if (::rename(from.c_str(), to.c_str()) != 0)
        return std::unexpected(file_error("rename " + from + " to", to, errno));
    return sync_folder_of(to);
}

bool file_exists(const std::string& path) {
    std::error_code absent;
    return fs::exists(path, absent);
}

std::optional<FileIdentity> identity_of(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return std::nullopt;
    return FileIdentity{info.st_dev, info.st_ino};
}

StatePaths::StatePaths(std::string path) : database(std::move(path)) {
    // Step by step: also where the last link points to a file that is not there yet.
    constexpr int kMaxLinks = 40;  // as the kernel
    for (int i = 0; i < kMaxLinks; ++i) {
        std::error_code none;
        const fs::path target = fs::read_symlink(database, none);
        if (none) return;
        database =
            target.is_absolute() ? target.string() : (fs::path(database).parent_path() / target).string();
    }
}

std::vector<std::string> StatePaths::logs() const {
    constexpr std::size_t kDigits = 16;
    std::vector<std::string> found;
    const fs::path prefix = log_prefix();
    std::error_code absent;
    for (const auto& one : fs::directory_iterator(fs::absolute(prefix).parent_path(), absent)) {
        const std::string name = one.path().filename().string();
        const std::string start = prefix.filename().string();
        if (!name.starts_with(start) || name.size() != start.size() + kDigits) continue;
        if (name.find_first_not_of("0123456789abcdef", start.size()) != std::string::npos) continue;
        found.push_back((prefix.parent_path() / name).string());
    }
    std::ranges::sort(found);
    return found;
}

std::vector<std::string> StatePaths::database_files() const {
    return {database + "-wal", database + "-shm", database};
}

std::string time_stamp() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    gmtime_r(&now, &parts);
    return fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<std::string> set_aside(const std::vector<std::string>& files, const std::string& suffix) {
    std::string free_suffix = suffix;
    const auto taken = [&](const std::string& one) { return file_exists(one + "." + free_suffix); };
    for (int n = 2; std::ranges::any_of(files, taken); ++n) free_suffix = fmt::format("{}-{}", suffix, n);
    for (const std::string& one : files) {
        if (!file_exists(one)) continue;
        if (::rename(one.c_str(), (one + "." + free_suffix).c_str()) != 0)
            return std::unexpected(file_error("put aside", one, errno));
    }
    if (files.empty()) return std::string();
    if (Result<> ok = sync_folder_of(files.back()); !ok) return std::unexpected(ok.error());
    return files.back() + "." + free_suffix;
}

}  // namespace memtide::fm

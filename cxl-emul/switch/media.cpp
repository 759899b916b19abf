#include "cxl-emul/switch/media.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memtide::emul {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{1} << 20;

struct Range {
    std::uint64_t begin;
    std::uint64_t end;
};

std::unexpected<Error> io_error(std::string_view action, const std::string& path, int error) {
    // EFBIG is a limit of the process or the file system that a bigger disk would not have met either.
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    auto failure = fail_errno(action, path, error);
    if (full) return fail(ErrorCode::kExhausted, failure.error().message);
    return failure;
}

// The parts of [begin, end) that were ever written; holes read as zeros and need no work.
Result<std::vector<Range>> data_ranges(int fd, const std::string& path, std::uint64_t begin,
                                       std::uint64_t end) {
    std::vector<Range> ranges;
    while (begin < end) {
        const off_t data = lseek(fd, static_cast<off_t>(begin), SEEK_DATA);
        if (data < 0 && errno == ENXIO) break;  // no data up to the end of the file
        if (data < 0) return io_error("look for data in media", path, errno);
        if (static_cast<std::uint64_t>(data) >= end) break;
        const off_t hole = lseek(fd, data, SEEK_HOLE);
        if (hole < 0) return io_error("look for holes in media", path, errno);
        const std::uint64_t stop = std::min(static_cast<std::uint64_t>(hole), end);
        ranges.push_back({static_cast<std::uint64_t>(data), stop});
        begin = stop;
    }
    return ranges;
}

// Walks through ranges in chunks, showing progress from one percentage to another.
template <typename Step>
Result<> walk(const std::vector<Range>& ranges, EraseControl& control, unsigned from, unsigned to,
              Step&& step) {
    std::uint64_t total = 1;
    for (const Range& range : ranges) total += range.end - range.begin;
    std::uint64_t walked = 0;
    for (const Range& range : ranges)
        for (std::uint64_t at = range.begin; at < range.end; at += kChunk) {
            if (control.cancel) return fail(ErrorCode::kCancelled, "erasing was aborted");
            const std::uint64_t length = std::min(kChunk, range.end - at);
            if (auto ok = step(at, length); !ok) return ok;
            walked += length;
            control.percent = from + static_cast<unsigned>((to - from) * walked / total);
        }
    return {};
}

const std::vector<std::byte>& zeros() {
    static const std::vector<std::byte> chunk(kChunk);
    return chunk;
}

Result<> write_zeros(int fd, const std::string& path, std::uint64_t at, std::uint64_t length) {
    while (length > 0) {
        const ssize_t written = pwrite(fd, zeros().data(), length, static_cast<off_t>(at));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return io_error("write zeros to media", path, errno);
        at += static_cast<std::uint64_t>(written);
        length -= static_cast<std::uint64_t>(written);
    }
    return {};
}

// `buffer` has room for a chunk.
Result<> expect_zeros(int fd, const std::string& path, std::uint64_t at, std::uint64_t length,
                      std::vector<std::byte>& buffer) {
    while (length > 0) {
        const ssize_t got = pread(fd, buffer.data(), length, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error("read back media", path, errno);
        if (got == 0) return fail(ErrorCode::kIo, fmt::format("media {} ends at byte {}", path, at));
        const auto count = static_cast<std::uint64_t>(got);
        if (std::memcmp(buffer.data(), zeros().data(), count) != 0)
            return fail(ErrorCode::kIo,
                        fmt::format("media {} is not zero after it was erased, in bytes {} to {}", path, at,
                                    at + count));
        at += count;
        length -= count;
    }
    return {};
}

Result<> check_ownership(const std::string& path, int fd) {
    struct stat status{};
    if (fstat(fd, &status) != 0) return io_error("look at media", path, errno);
    if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kPermission, path + " is not a regular file");
    // /dev/shm is everybody's: somebody could have put a file there that he can read and write.
    if (status.st_uid != geteuid())
        return fail(ErrorCode::kPermission,
                    path + " belongs to another user: remove it, or choose another folder for media");
    return {};
}

Result<> lock(const std::string& path, int fd) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK) return io_error("lock media", path, errno);
    return fail(ErrorCode::kAlreadyExists,
                fmt::format("media {} is in use by another switch that runs this topology", path));
}

}  // namespace

Result<std::unique_ptr<MediaFile>> MediaFile::open(const std::string& path, Bytes size) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        if (errno == ENOENT)
            return fail(ErrorCode::kNotFound,
                        fmt::format("create media {}: its folder does not exist", path));
        if (errno == ELOOP)
            return fail(ErrorCode::kPermission, fmt::format("open media {}: it is a symbolic link", path));
        return io_error("open media", path, errno);
    }
    std::unique_ptr<MediaFile> file(new MediaFile(path, size, fd));
    if (auto ours = check_ownership(path, fd); !ours) return std::unexpected(ours.error());
    if (auto free = lock(path, fd); !free) return std::unexpected(free.error());
    struct stat status{};
    if (fstat(fd, &status) != 0) return io_error("look at media", path, errno);
    // A larger file keeps its tail: the topology may grow again.
    if (static_cast<std::uint64_t>(status.st_size) < size.value &&
        ftruncate(fd, static_cast<off_t>(size.value)) != 0)
        return io_error(fmt::format("extend media to {}:", format_bytes(size)), path, errno);
    return file;
}

Result<bool> MediaFile::remove(const std::string& path) {
    // O_NONBLOCK: whatever is there must not make us wait.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        if (errno == ENOENT) return false;
        if (errno == ELOOP)
            return fail(ErrorCode::kPermission, fmt::format("remove media {}: it is a symbolic link", path));
        return io_error("remove media", path, errno);
    }
    const std::unique_ptr<MediaFile> file(new MediaFile(path, Bytes{}, fd));
    if (auto ours = check_ownership(path, fd); !ours) return std::unexpected(ours.error());
    if (auto free = lock(path, fd); !free) return std::unexpected(free.error());
    if (auto same = file->check(); !same) return std::unexpected(same.error());
    if (unlink(path.c_str()) != 0) return io_error("remove media", path, errno);
    return true;
}

MediaFile::MediaFile(std::string path, Bytes size, int fd) : path_(std::move(path)), size_(size), fd_(fd) {}

MediaFile::~MediaFile() { close(fd_); }

Result<> MediaFile::check() const {
    struct stat named{};
    struct stat opened{};
    if (stat(path_.c_str(), &named) != 0) {
        if (errno == ENOENT) return fail(ErrorCode::kNotFound, "media " + path_ + " was removed");
        return io_error("look at media", path_, errno);
    }
    if (fstat(fd_, &opened) != 0) return io_error("look at media", path_, errno);
    if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino)
        return fail(ErrorCode::kNotFound, "media " + path_ + " was replaced by another file");
    if (static_cast<std::uint64_t>(opened.st_size) < size_.value)
        return fail(ErrorCode::kIo, fmt::format("media {} was cut to {} bytes, the device has {}", path_,
                                                opened.st_size, size_.value));
    return {};
}

Result<> MediaFile::erase(Bytes offset, Bytes size, EraseControl& control) {
    if (auto there = check(); !there) return there;
    const std::uint64_t end = offset.value + size.value;
    auto written = data_ranges(fd_, path_, offset.value, end);
    if (!written) return std::unexpected(written.error());
    auto ok = walk(*written, control, 0, 60, [&](std::uint64_t at, std::uint64_t length) {
        return write_zeros(fd_, path_, at, length);
    });
    if (!ok) return ok;

    // Not every file system can punch holes; then the zeros stay.
    if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset.value),
                  static_cast<off_t>(size.value)) != 0 &&
        errno != EOPNOTSUPP)
        return io_error("punch a hole in media", path_, errno);

    // What was written, and whatever the file system says is data now.
    auto left = data_ranges(fd_, path_, offset.value, end);
    if (!left) return std::unexpected(left.error());
    written->insert(written->end(), left->begin(), left->end());
    std::vector<std::byte> buffer(written->empty() ? 0 : kChunk);
    ok = walk(*written, control, 60, 100, [&](std::uint64_t at, std::uint64_t length) {
        return expect_zeros(fd_, path_, at, length, buffer);
    });
    if (ok) control.percent = 100;
    return ok;
}

}  // namespace memtide::emul

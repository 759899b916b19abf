#include "fabric-manager/security/audit_file.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memtide::fm {
namespace {

class RealAuditFile : public AuditFile {
  public:
    explicit RealAuditFile(AuditFileOptions options) : options_(std::move(options)) {}
    ~RealAuditFile() override { close(); }
    RealAuditFile(const RealAuditFile&) = delete;
    RealAuditFile& operator=(const RealAuditFile&) = delete;

    Result<> append(std::string_view line) override {
        if (fd_ < 0)
            if (auto opened = reopen(); !opened) return opened;
        if (size_ > 0 && size_ + line.size() + 1 > options_.rotate_bytes) rotate();
        std::string text(line);
        text += '\n';
        const ssize_t put = ::write(fd_, text.data(), text.size());
        if (put == static_cast<ssize_t>(text.size())) {
            size_ += text.size();
            dirty_ = true;
            return options_.sync_each_line ? sync() : Result<>{};
        }
        const int error = put < 0 ? errno : ENOSPC;
        // Half a line would swallow the one behind it.
        if (put > 0 && ::ftruncate(fd_, static_cast<off_t>(size_)) != 0) close();
        auto failed = fail_errno("write to the audit log", options_.path, error);
        if (error == ENOSPC || error == EDQUOT || error == EFBIG) failed.error().code = ErrorCode::kExhausted;
        return failed;
    }

    Result<> sync() override {
        if (!dirty_ || fd_ < 0) return {};
        if (::fdatasync(fd_) != 0) return fail_errno("sync the audit log", options_.path, errno);
        dirty_ = false;
        return {};
    }

    Result<> reopen() override {
        const int fd =
            ::open(options_.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) return fail_errno("open the audit log", options_.path, errno);
        struct stat status{};
        if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
            ::close(fd);
            return fail(ErrorCode::kIo, fmt::format("the audit log {} is not a file", options_.path));
        }
        if ((status.st_mode & 077) != 0 && ::fchmod(fd, 0600) != 0) {
            const int error = errno;
            ::close(fd);
            return fail_errno("make private the audit log", options_.path, error);
        }
        close();
        fd_ = fd;
        size_ = static_cast<std::uint64_t>(status.st_size);
        return end_torn_line();
    }

  private:
    // A manager that was killed cannot leave half a line, but a machine that lost power can.
    Result<> end_torn_line() {
        if (size_ == 0) return {};
        char last = '\n';
        const int reading = ::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC);
        if (reading >= 0) {
            if (::pread(reading, &last, 1, static_cast<off_t>(size_ - 1)) != 1) last = '\n';
            ::close(reading);
        }
        if (last != '\n' && ::write(fd_, "\n", 1) == 1) ++size_;
        return {};
    }

    // When it cannot be done the file just grows on.
    void rotate() {
        (void)sync();
        const auto name = [this](int number) { return fmt::format("{}.{}", options_.path, number); };
        for (int number = options_.keep - 1; number >= 1; --number)
            (void)std::rename(name(number).c_str(), name(number + 1).c_str());
        if (options_.keep > 0 ? std::rename(options_.path.c_str(), name(1).c_str()) != 0
                              : ::unlink(options_.path.c_str()) != 0)
            return;
        (void)reopen();
    }

    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

    AuditFileOptions options_;
    int fd_ = -1;
    std::uint64_t size_ = 0;
    bool dirty_ = false;
};

}  // namespace

Result<std::unique_ptr<AuditFile>> open_audit_file(AuditFileOptions options) {
    auto file = std::make_unique<RealAuditFile>(std::move(options));
    if (auto opened = file->reopen(); !opened) return std::unexpected(std::move(opened.error()));
    return file;
}

}  // namespace memtide::fm

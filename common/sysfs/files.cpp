#include "common/sysfs/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace memtide {
namespace {

constexpr std::size_t kReadLimit = 16 << 20;
constexpr std::size_t kLineLimit = 1 << 20;

class Descriptor {
  public:
    Descriptor(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC)) {}
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int get() const { return fd_; }

  private:
    int fd_;
};

std::unexpected<Error> fail_system(std::string_view action, std::string_view object, int error_number) {
    auto failure = fail_errno(action, object, error_number);
    switch (error_number) {
        case EBUSY:
        case EAGAIN:
            failure.error().code = ErrorCode::kConflict;
            break;
        case EINTR:
            failure.error().code = ErrorCode::kCancelled;
            break;
        case ENODEV:
        case ENXIO:
            failure.error().code = ErrorCode::kNotFound;
            break;
        case EINVAL:
            failure.error().code = ErrorCode::kInvalidArgument;
            break;
        default:
            break;
    }
    return failure;
}

}  // namespace

Files::Files(std::string root) : root_(std::move(root)) {
    if (root_.empty() || root_.back() != '/') root_ += '/';
}

Result<std::string> Files::read(const std::string& path) const {
    const std::string full = absolute(path);
    const Descriptor file(full, O_RDONLY);
    if (file.get() < 0) return fail_system("open", full, errno);
    std::string text;
    std::array<char, 16384> chunk{};
    while (text.size() < kReadLimit) {
        const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_system("read", full, errno);
        if (got == 0) break;
        text.append(chunk.data(), static_cast<std::size_t>(got));
    }
    const auto end = text.find_last_not_of(" \t\n");
    text.erase(end == std::string::npos ? 0 : end + 1);
    text.erase(0, text.find_first_not_of(" \t\n"));
    return text;
}

Result<> Files::for_each_line(const std::string& path,
                              const std::function<void(std::string_view)>& visit) const {
    const std::string full = absolute(path);
    const Descriptor file(full, O_RDONLY);
    if (file.get() < 0) return fail_system("open", full, errno);
    std::string pending;
    std::vector<char> chunk(65536);
    while (true) {
        const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_system("read", full, errno);
        if (got == 0) break;
        std::string_view fresh(chunk.data(), static_cast<std::size_t>(got));
        for (auto end = fresh.find('\n'); end != std::string_view::npos; end = fresh.find('\n')) {
            pending += fresh.substr(0, end);
            visit(pending);
            pending.clear();
            fresh.remove_prefix(end + 1);
        }
        pending += fresh;
        if (pending.size() <= kLineLimit) continue;
        visit(pending);
        pending.clear();
    }
    if (!pending.empty()) visit(pending);
    return {};
}

Result<std::uint64_t> Files::read_number(const std::string& path) const {
    auto text = read(path);
    if (!text) return std::unexpected(std::move(text.error()));
    std::string_view digits = *text;
    const bool hexadecimal = digits.starts_with("0x");
    if (hexadecimal) digits.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, hexadecimal ? 16 : 10);
    if (error != std::errc{} || end != digits.data() + digits.size())
        return fail(ErrorCode::kProtocol,
                    fmt::format("{} holds \"{}\", not a number", absolute(path), *text));
    return number;
}

Result<> Files::write(const std::string& path, std::string_view text) {
    const std::string full = absolute(path);
    const Descriptor file(full, O_WRONLY);
    if (file.get() < 0) return fail_system("open", full, errno);
    // Not repeated on EINTR: whoever sent the signal wants the call to end.
    if (::write(file.get(), text.data(), text.size()) < 0)
        return fail_system(fmt::format("write \"{}\" to", text), full, errno);
    return {};
}

std::vector<std::string> Files::list(const std::string& path) const {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(absolute(path), error), end; !error && it != end;
         it.increment(error))
        names.push_back(it->path().filename().string());
    std::ranges::sort(names);
    return names;
}

std::optional<std::string> Files::link_target(const std::string& path) const {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(absolute(path), error);
    if (error) return std::nullopt;
    return target.filename().string();
}

Result<std::string> Files::read_link(const std::string& path) const {
    const std::string full = absolute(path);
    std::error_code error;
    const auto target = std::filesystem::read_symlink(full, error);
    if (error) return fail_system("read the link", full, error.value());
    return target.string();
}

bool Files::exists(const std::string& path) const {
    std::error_code error;
    return std::filesystem::exists(std::filesystem::symlink_status(absolute(path), error));
}

}  // namespace memtide

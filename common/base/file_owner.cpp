#include "common/base/file_owner.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memtide {
namespace {

namespace fs = std::filesystem;

struct KnownUser {
    std::string name;
    gid_t group = 0;
};
std::optional<KnownUser> look_up(uid_t user) {
    passwd entry{};
    passwd* found = nullptr;
    std::array<char, 4096> text{};
    if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
        return std::nullopt;
    return KnownUser{found->pw_name, found->pw_gid};
}

std::string user_name(uid_t user) {
    const auto known = look_up(user);
    return known ? known->name : fmt::format("#{}", user);  // as sudo -u takes it
}

// The owner of the first thing on the way to `path` that is not root's; 0 when all is.
uid_t first_other_owner(const fs::path& path, int links, gid_t& group) {
    constexpr int kMaxLinks = 40;  // as the kernel
    fs::path so_far;
    for (const fs::path& part : path) {
        const fs::path here = so_far / part;
        struct stat status{};
        if (::lstat(here.c_str(), &status) != 0) return 0;
        if (status.st_uid != 0) {
            group = status.st_gid;
            return status.st_uid;
        }
        std::error_code failed;
        if (S_ISLNK(status.st_mode) && links < kMaxLinks) {
            const fs::path target = fs::read_symlink(here, failed);
            const fs::path where = target.is_absolute() ? target : so_far / target;
            if (const uid_t owner = first_other_owner(where, links + 1, group); owner != 0) return owner;
        }
        so_far = here;
    }
    return 0;
}

}  // namespace

std::string owner_of(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? user_name(status.st_uid) : std::string();
}

std::unexpected<Error> fail_errno_with_owner(std::string_view action, const std::string& path,
                                             int error_number) {
    auto failed = fail_errno(action, path, error_number);
    if (error_number != EACCES && error_number != EPERM) return failed;
    std::string owner = owner_of(path);
    if (owner.empty()) owner = owner_of(std::filesystem::absolute(path).parent_path().string());
    if (!owner.empty())
        failed.error().message +=
            fmt::format(" (it belongs to user {}; run this as that user: sudo -u '{}' ...)", owner, owner);
    return failed;
}

Result<std::string> become_owner(const std::string& path) {
    if (::geteuid() != 0) return std::string();
    gid_t group = 0;
    const uid_t user = first_other_owner(fs::absolute(path), 0, group);
    if (user == 0) return std::string();
    const auto known = look_up(user);
    if (known) group = known->group;
    const bool grouped = known ? ::initgroups(known->name.c_str(), group) == 0 : ::setgroups(1, &group) == 0;
    if (!grouped || ::setresgid(group, group, group) != 0 || ::setresuid(user, user, user) != 0)
        return fail_errno("become the user " + user_name(user) + ", whom this belongs to:", path, errno);
    return user_name(user);
}

Result<> give_to_owner_of(int fd, const std::string& path, const std::string& replaced) {
    struct stat theirs{};
    if (::lstat(replaced.c_str(), &theirs) != 0 || !S_ISREG(theirs.st_mode)) return {};
    struct stat mine{};
    if (::fstat(fd, &mine) != 0) return fail_errno("look at", path, errno);
    const bool root = ::geteuid() == 0;
    if (mine.st_uid == theirs.st_uid && (!root || mine.st_gid == theirs.st_gid)) return {};
    const bool own = S_ISREG(mine.st_mode) && mine.st_nlink == 1 && mine.st_uid == ::geteuid();
    if (root && own && ::fchown(fd, theirs.st_uid, theirs.st_gid) == 0) return {};
    const std::string user = user_name(theirs.st_uid);
    return fail(ErrorCode::kPermission, fmt::format("{} belongs to user {}, and {} could not be given to it; "
                                                    "run this as that user: sudo -u '{}' ...",
                                                    replaced, user, path, user));
}

Result<int> open_regular_file(std::string_view action, const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_errno_with_owner(action, path, errno);
    struct stat status{};
    if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
    ::close(fd);
    return fail(ErrorCode::kInvalidArgument, fmt::format("{} {}: it is not a regular file", action, path));
}

}  // namespace memtide

#include "common/base/file_owner.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memtide {
namespace {

std::string user_name(uid_t user) {
    passwd entry{};
    passwd* found = nullptr;
    std::array<char, 4096> text{};
    if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) == 0 && found != nullptr)
        return found->pw_name;
    return fmt::format("#{}", user);  // as sudo -u takes it
}

// `whose` is the file or folder that `theirs` is the status of.
Result<> give(int fd, const std::string& path, const std::string& whose, const struct stat& theirs) {
    struct stat mine{};
    if (::fstat(fd, &mine) != 0) return fail_errno("look at", path, errno);
    const bool root = ::geteuid() == 0;
    if (mine.st_uid == theirs.st_uid && (!root || mine.st_gid == theirs.st_gid)) return {};
    const bool folder = S_ISDIR(theirs.st_mode);
    if (!root && folder) return {};  // one that others may write to
    if (root && ::fchown(fd, theirs.st_uid, theirs.st_gid) == 0) return {};
    const std::string reason = root ? " (" + std::generic_category().message(errno) + ")" : "";
    if (folder && (theirs.st_mode & S_IWOTH) != 0) return {};
    const std::string user = user_name(theirs.st_uid);
    return fail(
        ErrorCode::kPermission,
        fmt::format("{} belongs to user {}, and {} could not be given to it{}; run this as that user: "
                    "sudo -u '{}' ...",
                    whose, user, path, reason, user));
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

Result<> give_to_owner_of(int fd, const std::string& path, const std::string& replaced) {
    struct stat status{};
    if (::stat(replaced.c_str(), &status) == 0) return give(fd, path, replaced, status);
    return give_to_owner_of_folder(fd, path);
}

Result<> give_to_owner_of_folder(int fd, const std::string& path) {
    const std::string folder = std::filesystem::absolute(path).parent_path().string();
    struct stat status{};
    if (::stat(folder.c_str(), &status) != 0) return fail_errno("look at", folder, errno);
    return give(fd, path, folder, status);
}

}  // namespace memtide

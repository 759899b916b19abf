#include "cxl-emul/rack/run_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace memtide::emul {
namespace fs = std::filesystem;

namespace {
// The default is in /tmp for some users, where others could have put a folder or a link of their own.
Result<> check_owner(const std::string& path) {
    const auto parent = fs::path(path).parent_path().string();
    struct stat folder{};
    struct stat above{};
    if (::lstat(path.c_str(), &folder) != 0 || ::stat(parent.c_str(), &above) != 0)
        return fail_errno("look at the run folder", path, errno);
    const bool ours = S_ISDIR(folder.st_mode) && folder.st_uid == ::geteuid();
    if (ours && (above.st_uid == ::geteuid() || above.st_uid == 0)) return {};
    return fail(ErrorCode::kPermission,
                fmt::format("the run folder {} is not yours alone; choose another with --run-dir", path));
}

std::string lock_path(const std::string& folder) { return folder + "/supervisor.pid"; }
}  // namespace

std::string RunFolder::default_parent() {
    if (::geteuid() == 0) return "/run/memtide";
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime && *runtime) return std::string(runtime) + "/memtide";
    return fmt::format("/tmp/memtide-{}", ::geteuid());
}

std::string RunFolder::default_path(const std::string& topology_name) {
    return default_parent() + "/" + topology_name;
}

std::optional<pid_t> RunFolder::running(const std::string& path) {
    const int fd = ::open(lock_path(path).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    const bool free = ::flock(fd, LOCK_SH | LOCK_NB) == 0;
    ::close(fd);
    if (free) return std::nullopt;
    pid_t pid = 0;
    std::ifstream(lock_path(path)) >> pid;
    return pid;
}

Result<RunFolder> RunFolder::claim(const std::string& path) {
    if (control_socket_of(path).size() >= sizeof(sockaddr_un::sun_path)) {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("the path of the run folder is too long for a unix socket in it ({}); choose "
                                "another with --run-dir",
                                path));
    }
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return fail_errno("create the run folder", path, error.value());
    if (auto ours = check_owner(path); !ours) return std::unexpected(ours.error());
    const int fd = ::open(lock_path(path).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return fail_errno("open", lock_path(path), errno);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const auto pid = running(path).value_or(0);
        ::close(fd);
        return fail(ErrorCode::kAlreadyExists,
                    fmt::format("already running (pid {}), in {}; stop it with `rack down`", pid, path));
    }
    RunFolder folder(path, fd);
    folder.clear(false);
    fs::remove_all(path + "/hosts", error);
    fs::remove(folder.log(), error);
    return folder;
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() {
    if (lock_ >= 0) ::close(lock_);
}

Result<> RunFolder::record_pid(pid_t pid) {
    const auto text = fmt::format("{}\n", pid);
    if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, text.data(), text.size(), 0) < 0)
        return fail_errno("write", lock_path(path_), errno);
    return {};
}

Result<> RunFolder::add_host(const std::string& host) {
    std::error_code error;
    fs::create_directories(host_folder(host), error);
    if (error) return fail_errno("create", host_folder(host), error.value());
    return {};
}

void RunFolder::clear(bool logs_too) {
    std::error_code error;
    for (const char* name : {"control.sock", "faults.sock", "initramfs", "kvm-probe.console"})
        fs::remove(path_ + "/" + name, error);
    for (fs::directory_iterator it(path_ + "/hosts", error), end; !error && it != end; it.increment(error)) {
        std::error_code ignored;
        for (fs::directory_iterator file(it->path(), ignored), last; !ignored && file != last;
             file.increment(ignored))
            if (file->is_socket(ignored)) fs::remove(file->path(), ignored);
    }
    if (!logs_too) return;
    fs::remove_all(path_ + "/hosts", error);
    for (const char* name : {"supervisor.log", "kvm-probe.log", "supervisor.pid"})
        fs::remove(path_ + "/" + name, error);
    ::rmdir(path_.c_str());  // stays when somebody else keeps files there
}

}  // namespace memtide::emul

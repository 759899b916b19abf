#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "common/base/error.h"

namespace memtide::emul {

// The folder of a running rack: control socket, logs, and a lock that its supervisor holds for as long as it
// lives, so that a folder left by one that was killed is recognised and cleaned.
class RunFolder {
  public:
    // /run/memtide/NAME for root, else $XDG_RUNTIME_DIR/memtide/NAME or /tmp/memtide-UID/NAME.
    static std::string default_path(const std::string& topology_name);
    static std::string default_parent();
    // Creates the folder and takes the lock; clears what a former rack left there. kAlreadyExists with
    // "already running (pid N)"; kInvalidArgument when a unix socket cannot have a path as long as this.
    static Result<RunFolder> claim(const std::string& path);
    // The supervisor that runs there, if any.
    static std::optional<pid_t> running(const std::string& path);

    RunFolder(RunFolder&& other) noexcept;
    RunFolder& operator=(RunFolder&&) = delete;
    ~RunFolder();  // lets the lock go; the folder stays

    // Writes the pid that "already running" names; the lock goes on across fork(2).
    Result<> record_pid(pid_t pid);
    Result<> add_host(const std::string& host);
    // Removes sockets and images; `logs_too` removes everything that a rack puts there, and the folder.
    void clear(bool logs_too);

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string control_socket() const { return control_socket_of(path_); }
    // Where faults on demand are served (cxl-emul/faults/control.h).
    [[nodiscard]] std::string fault_socket() const { return path_ + "/faults.sock"; }
    [[nodiscard]] std::string log() const { return path_ + "/supervisor.log"; }
    [[nodiscard]] std::string host_folder(const std::string& host) const { return path_ + "/hosts/" + host; }
    static std::string control_socket_of(const std::string& path) { return path + "/control.sock"; }

  private:
    RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
    std::string path_;
    int lock_;
};

}  // namespace memtide::emul

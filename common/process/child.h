#pragma once

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <sys/types.h>

#include "common/base/error.h"

namespace memtide::process {

// Where a standard stream of a child goes to or comes from.
struct Stream {
    enum class Kind { kInherit, kNull, kFd, kFile };
    Kind kind = Kind::kInherit;
    int fd = -1;         // kFd: duplicated into the child; the caller keeps its own
    std::string path;    // kFile: stdin opens it to read; stdout and stderr create and write it
    bool append = true;  // kFile: false empties it first

    static Stream inherit() { return {}; }
    static Stream null() { return {.kind = Kind::kNull, .path = {}}; }
    static Stream from_fd(int fd) { return {.kind = Kind::kFd, .fd = fd, .path = {}}; }
    static Stream file(std::string path, bool append = true) {
        return {.kind = Kind::kFile, .path = std::move(path), .append = append};
    }
};

struct Command {
    std::vector<std::string> argv;  // argv[0] is looked up in PATH when it has no slash
    // Changes to this process's environment; no value: the variable is removed.
    std::map<std::string, std::optional<std::string>> environment;
    std::string working_directory;  // empty: this process's
    Stream standard_input = Stream::null();
    Stream standard_output;
    Stream standard_error;
    // Descriptors the child gets under the same number; every other one above 2 is closed in it.
    std::vector<int> pass_fds;
    // Sent to the child when the *thread* that spawned it ends (prctl(2)): spawn from a thread that lives as
    // long as the program. 0: none.
    int death_signal = SIGKILL;
    bool new_session = false;  // setsid(2): terminal signals do not reach it
};

// How a process ended.
struct Exit {
    int code = 0;    // valid when signal is 0
    int signal = 0;  // that ended it
    [[nodiscard]] bool succeeded() const { return code == 0 && signal == 0; }
    // 128 + signal for a process that a signal ended, as shells do.
    [[nodiscard]] int shell_code() const { return signal == 0 ? code : 128 + signal; }
    // "exited with code 3", "ended by signal 9 (Killed)"
    [[nodiscard]] std::string describe() const;
};

// A child process, reaped by whichever of wait, try_wait and the destructor comes first. The destructor kills
// (SIGKILL) what still runs: nothing is left behind. Not thread safe; wait() and wait_for() may be called
// again after the end and answer the same.
class Child {
  public:
    // Fails with what the kernel said when the program cannot be started: kNotFound, kPermission, kIo...
    static Result<Child> spawn(const Command& command);

    Child(Child&&) noexcept;
    Child& operator=(Child&&) noexcept;
    ~Child();

    [[nodiscard]] pid_t pid() const { return pid_; }
    // Whether it has not been seen to end.
    [[nodiscard]] bool running() const { return pid_ > 0 && !exit_; }
    // Through the pidfd, so never to a stranger that got the same pid. Nothing happens once it has ended.
    Result<> signal(int number);
    Result<> terminate() { return signal(SIGTERM); }
    Result<> kill() { return signal(SIGKILL); }

    // Completes when the child ends. Cancellable; the child then goes on.
    boost::asio::awaitable<Result<Exit>> wait();
    // SIGTERM, then SIGKILL after `grace`.
    boost::asio::awaitable<Result<Exit>> stop(std::chrono::milliseconds grace);
    // Blocks the thread; kTimeout when it still runs after `limit`.
    Result<Exit> wait_for(std::chrono::milliseconds limit);
    // Nothing while it runs.
    std::optional<Exit> try_wait();

  private:
    Child(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}
    void reap(int options);
    void close() noexcept;

    pid_t pid_ = -1;
    int pidfd_ = -1;
    std::optional<Exit> exit_;
};

struct Output {
    Exit exit;
    std::string standard_output;
    std::string standard_error;
};

// Runs a short command to its end, collecting what it writes (at most 16 MiB a stream, the rest is dropped).
// Blocks the thread. After `limit` the command is killed: kTimeout.
Result<Output> run(Command command, std::chrono::milliseconds limit, std::string_view input = {});

}  // namespace memtide::process

#include "common/process/launch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process/pidfd.h"

namespace memtide::process {
namespace {

// What failed in the child, told to the parent through a pipe.
enum class Step : int { kParentGone, kStream, kDirectory, kPass, kExecute };
struct Failure {
    Step step;
    int error;
};

// Everything the child needs, made before the fork: behind it, in a copy of a process that may have had other
// threads, only async-signal-safe calls are allowed.
struct Plan {
    std::string program;
    std::vector<char*> argv;
    std::vector<std::string> environment_text;
    std::vector<char*> environment;
    std::array<int, 3> streams{-1, -1, -1};  // -1: inherited
    std::vector<int> opened;                 // to be closed by the parent
    std::vector<int> pass;                   // sorted
    const char* directory = nullptr;
    int death_signal = 0;
    bool new_session = false;
    pid_t parent = 0;

    Plan() = default;
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan() {
        for (const int fd : opened) ::close(fd);
    }
};

Result<std::string> find_program(const std::string& name, const std::string& path) {
    if (name.empty()) return fail(ErrorCode::kInvalidArgument, "start: the command is empty");
    if (name.find('/') != std::string::npos) return name;
    int error = ENOENT;
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        const std::string folder = path.substr(begin, end - begin);
        std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
        if (errno == EACCES) error = EACCES;
        begin = end + 1;
    }
    return fail_errno("start", name, error);
}

Result<int> open_stream(const Stream& stream, int number, Plan& plan) {
    if (stream.kind == Stream::Kind::kInherit) return -1;
    if (stream.kind == Stream::Kind::kFd) {
        // A copy above 2, so that no dup2 onto 0, 1 or 2 can overwrite one that is still needed.
        const int fd = ::fcntl(stream.fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0) return fail_errno("duplicate", fmt::format("descriptor {}", stream.fd), errno);
        plan.opened.push_back(fd);
        return fd;
    }
    const std::string path = stream.kind == Stream::Kind::kNull ? "/dev/null" : stream.path;
    const int flags = number == 0 ? O_RDONLY : O_WRONLY | O_CREAT | (stream.append ? O_APPEND : O_TRUNC);
    const int low = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0644);
    if (low < 0) return fail_errno("open", path, errno);
    const int fd = ::fcntl(low, F_DUPFD_CLOEXEC, 3);
    const int error = errno;
    ::close(low);
    if (fd < 0) return fail_errno("open", path, error);
    plan.opened.push_back(fd);
    return fd;
}

void plan_environment(const Command& command, Plan& plan) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!command.environment.contains(std::string(text.substr(0, text.find('=')))))
            plan.environment_text.emplace_back(text);
    }
    for (const auto& [name, value] : command.environment)
        if (value) plan.environment_text.push_back(name + "=" + *value);
    for (std::string& text : plan.environment_text) plan.environment.push_back(text.data());
    plan.environment.push_back(nullptr);
}

std::string path_of(const Plan& plan) {
    for (const std::string& text : plan.environment_text)
        if (text.starts_with("PATH=")) return text.substr(5);
    return "/usr/local/bin:/usr/bin:/bin";
}

Result<> make_plan(const Command& command, Plan& plan) {
    if (command.argv.empty()) return fail(ErrorCode::kInvalidArgument, "start: the command is empty");
    plan_environment(command, plan);
    auto program = find_program(command.argv.front(), path_of(plan));
    if (!program) return std::unexpected(std::move(program.error()));
    plan.program = *std::move(program);
    // execve takes them as char*, and does not write to them.
    for (const std::string& argument : command.argv) plan.argv.push_back(const_cast<char*>(argument.c_str()));
    plan.argv.push_back(nullptr);
    const std::array streams{&command.standard_input, &command.standard_output, &command.standard_error};
    for (int number = 0; number < 3; ++number) {
        const auto index = static_cast<std::size_t>(number);
        auto fd = open_stream(*streams[index], number, plan);
        if (!fd) return std::unexpected(std::move(fd.error()));
        plan.streams[index] = *fd;
    }
    plan.pass = command.pass_fds;
    std::ranges::sort(plan.pass);
    if (!command.working_directory.empty()) plan.directory = command.working_directory.c_str();
    plan.death_signal = command.death_signal;
    plan.new_session = command.new_session;
    plan.parent = ::getpid();
    return {};
}

[[noreturn]] void give_up(int report, Step step, int error) {
    const Failure failure{step, error};
    [[maybe_unused]] const auto written = ::write(report, &failure, sizeof failure);
    ::_exit(127);
}

// Every descriptor above 2 closes at exec but those to be passed; `report` closes then too, which tells the
// parent that the program runs.
void mark_descriptors(const Plan& plan, int report) {
    unsigned next = 3;
    for (const int fd : plan.pass) {
        if (fd < 3) continue;
        const auto kept = static_cast<unsigned>(fd);
        if (kept > next) ::close_range(next, kept - 1, CLOSE_RANGE_CLOEXEC);
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags < 0 || ::fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC) < 0) give_up(report, Step::kPass, errno);
        next = kept + 1;
    }
    ::close_range(next, UINT_MAX, CLOSE_RANGE_CLOEXEC);
}

void restore_signals() {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(const Plan& plan, int report) {
    if (plan.new_session) ::setsid();
    if (plan.death_signal != 0) {
        ::prctl(PR_SET_PDEATHSIG, plan.death_signal);
        // The parent may have ended before the line above.
        if (::getppid() != plan.parent) give_up(report, Step::kParentGone, ESRCH);
    }
    restore_signals();
    for (int number = 0; number < 3; ++number) {
        const int fd = plan.streams[static_cast<std::size_t>(number)];
        if (fd >= 0 && ::dup2(fd, number) < 0) give_up(report, Step::kStream, errno);
    }
    if (plan.directory != nullptr && ::chdir(plan.directory) != 0) give_up(report, Step::kDirectory, errno);
    mark_descriptors(plan, report);
    ::execve(plan.program.c_str(), plan.argv.data(), plan.environment.data());
    give_up(report, Step::kExecute, errno);
}

std::unexpected<Error> explain(const Failure& failure, const Command& command, const Plan& plan) {
    switch (failure.step) {
        case Step::kStream:
            return fail_errno("redirect the standard streams of", plan.program, failure.error);
        case Step::kDirectory:
            return fail_errno("change to folder", command.working_directory, failure.error);
        case Step::kPass:
            return fail_errno("pass descriptors to", plan.program, failure.error);
        case Step::kParentGone:
        case Step::kExecute:
            break;
    }
    return fail_errno("start", plan.program, failure.error);
}

// Reads what the child has to say before it becomes the program: nothing when all went well.
std::optional<Failure> hear(int report) {
    Failure failure{};
    ssize_t got = 0;
    do {
        got = ::read(report, &failure, sizeof failure);
    } while (got < 0 && errno == EINTR);
    if (got == sizeof failure) return failure;
    return std::nullopt;
}

}  // namespace

Result<Launched> launch(const Command& command) {
    Plan plan;
    if (auto made = make_plan(command, plan); !made) return std::unexpected(std::move(made.error()));
    std::array<int, 2> report{};
    if (::pipe2(report.data(), O_CLOEXEC) != 0) return fail_errno("start", plan.program, errno);
    // Without stdin, stdout or stderr of our own, a pipe end may be 0, 1 or 2, where it would be overwritten.
    for (int& end : report) {
        if (end > 2) continue;
        const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
        ::close(end);
        end = moved;
    }
    const pid_t pid = ::fork();
    if (pid == 0) become(plan, report[1]);
    const int fork_error = errno;
    ::close(report[1]);
    if (pid < 0) {
        ::close(report[0]);
        return fail_errno("start", plan.program, fork_error);
    }
    const std::optional<Failure> failure = hear(report[0]);
    ::close(report[0]);
    if (failure) {
        ::waitpid(pid, nullptr, 0);
        return explain(*failure, command, plan);
    }
    // The child is not reaped yet, so the pid is still its own.
    const int pidfd = open_pidfd(pid);
    if (pidfd < 0) {
        const int error = errno;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        return fail_errno("open a pidfd of", plan.program, error);
    }
    return Launched{pid, pidfd};
}

}  // namespace memtide::process

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::process {
namespace {

using Clock = std::chrono::steady_clock;

struct Fd {
    int value = -1;
    Fd() = default;
    explicit Fd(int fd) : value(fd) {}
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() { close(); }
    void close() {
        if (value >= 0) ::close(std::exchange(value, -1));
    }
};

struct Pipe {
    Fd read;
    Fd write;
    Result<> open() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("open", "a pipe", errno);
        read.value = ends[0];
        write.value = ends[1];
        return {};
    }
};

void set_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

// Takes what is there; closes at the end of the stream.
void drain(Fd& fd, std::string& text) {
    constexpr std::size_t kMost = 16U << 20;
    std::array<char, 16384> piece{};
    const ssize_t got = ::read(fd.value, piece.data(), piece.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return fd.close();
    text.append(piece.data(), std::min(static_cast<std::size_t>(got), kMost - text.size()));
}

// write(2) that fails with EPIPE and never raises SIGPIPE, whatever the program does about that signal.
ssize_t write_quietly(int fd, std::string_view text) {
    sigset_t pipe_signal;
    sigset_t before;
    ::sigemptyset(&pipe_signal);
    ::sigaddset(&pipe_signal, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const ssize_t put = ::write(fd, text.data(), text.size());
    const int error = errno;
    if (put < 0 && error == EPIPE) {
        const timespec at_once{};
        ::sigtimedwait(&pipe_signal, nullptr, &at_once);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return put;
}

void feed(Fd& fd, std::string_view& input) {
    const ssize_t put = write_quietly(fd.value, input);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put < 0) return fd.close();  // it does not want to read more
    input.remove_prefix(static_cast<std::size_t>(put));
    if (input.empty()) fd.close();
}

// Until both outputs are closed, or the deadline.
bool exchange(Fd& to, std::string_view input, Fd& out, Fd& err, Output& output, Clock::time_point deadline) {
    while (out.value >= 0 || err.value >= 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) return false;
        // poll skips descriptors below zero.
        std::array<pollfd, 3> wanted{{{.fd = out.value, .events = POLLIN, .revents = 0},
                                      {.fd = err.value, .events = POLLIN, .revents = 0},
                                      {.fd = to.value, .events = POLLOUT, .revents = 0}}};
        ::poll(wanted.data(), wanted.size(), static_cast<int>(std::min<long>(left, 60'000)));
        if (wanted[0].revents != 0) drain(out, output.standard_output);
        if (wanted[1].revents != 0) drain(err, output.standard_error);
        if (wanted[2].revents != 0) feed(to, input);
    }
    return true;
}

}  // namespace

Result<Output> run(Command command, std::chrono::milliseconds limit, std::string_view input) {
    const auto deadline = Clock::now() + limit;
    Pipe in;
    Pipe out;
    Pipe err;
    for (Pipe* pipe : {&in, &out, &err})
        if (auto opened = pipe->open(); !opened) return std::unexpected(std::move(opened.error()));
    command.standard_input = Stream::from_fd(in.read.value);
    command.standard_output = Stream::from_fd(out.write.value);
    command.standard_error = Stream::from_fd(err.write.value);
    auto child = Child::spawn(command);
    if (!child) return std::unexpected(std::move(child.error()));
    in.read.close();
    out.write.close();
    err.write.close();
    for (const int fd : {in.write.value, out.read.value, err.read.value}) set_nonblocking(fd);
    if (input.empty()) in.write.close();

    Output output;
    const bool finished = exchange(in.write, input, out.read, err.read, output, deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    auto exit = finished ? child->wait_for(left) : fail(ErrorCode::kTimeout, "");
    if (!exit)
        return fail(ErrorCode::kTimeout, fmt::format("{} did not end within {} ms and was killed",
                                                     command.argv.front(), limit.count()));
    output.exit = *exit;
    return output;
}

}  // namespace memtide::process

#include "common/process/child.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/no_throw.h"
#include "common/process/launch.h"
#include "common/process/pidfd.h"

namespace memtide::process {

namespace asio = boost::asio;

namespace {

std::unexpected<Error> never_started() {
    return fail(ErrorCode::kNotFound, "wait for a child: there is none");
}

}  // namespace

std::string Exit::describe() const {
    if (signal == 0) return fmt::format("exited with code {}", code);
    const char* name = ::sigdescr_np(signal);
    return fmt::format("ended by signal {} ({})", signal, name == nullptr ? "unknown" : name);
}

Result<Child> Child::spawn(const Command& command) {
    auto launched = launch(command);
    if (!launched) return std::unexpected(std::move(launched.error()));
    return Child{launched->pid, launched->pidfd};
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::exchange(other.pidfd_, -1)), exit_(other.exit_) {}

Child& Child::operator=(Child&& other) noexcept {
    if (this != &other) {
        close();
        pid_ = std::exchange(other.pid_, -1);
        pidfd_ = std::exchange(other.pidfd_, -1);
        exit_ = other.exit_;
    }
    return *this;
}

Child::~Child() { close(); }

void Child::close() noexcept {
    if (pidfd_ < 0) return;
    if (!exit_) {
        signal_pidfd(pidfd_, SIGKILL);
        siginfo_t info{};
        while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED) != 0 && errno == EINTR) {
        }
    }
    ::close(std::exchange(pidfd_, -1));
}

Result<> Child::signal(int number) {
    if (!running() || try_wait()) return {};
    if (signal_pidfd(pidfd_, number) == 0 || errno == ESRCH) return {};
    return fail_errno("signal", fmt::format("process {}", pid_), errno);
}

void Child::reap(int options) {
    if (exit_ || pidfd_ < 0) return;
    siginfo_t info{};
    int result = 0;
    do {
        result = ::waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED | options);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        exit_ = Exit{.code = 127};  // someone else reaped it; what it said is lost
        return;
    }
    if (info.si_pid == 0) return;
    if (info.si_code == CLD_EXITED)
        exit_ = Exit{.code = info.si_status};
    else
        exit_ = Exit{.signal = info.si_status};
}

std::optional<Exit> Child::try_wait() {
    reap(WNOHANG);
    return exit_;
}

asio::awaitable<Result<Exit>> Child::wait() {
    if (pidfd_ < 0) co_return never_started();
    if (try_wait()) co_return *exit_;
    const auto executor = co_await asio::this_coro::executor;
    // A pidfd is readable from the end of its process on. Asio closes what it is given, hence the copy.
    const int copy = ::fcntl(pidfd_, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) co_return fail_errno("wait for", fmt::format("process {}", pid_), errno);
    asio::posix::stream_descriptor readable(executor, copy);
    while (!try_wait()) {
        const auto [error] = co_await readable.async_wait(asio::posix::descriptor_base::wait_read, kNoThrow);
        if (error) co_return fail(ErrorCode::kCancelled, fmt::format("wait for process {}: cancelled", pid_));
    }
    co_return *exit_;
}

asio::awaitable<Result<Exit>> Child::stop(std::chrono::milliseconds grace) {
    using namespace asio::experimental::awaitable_operators;
    if (auto sent = terminate(); !sent) co_return std::unexpected(std::move(sent.error()));
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, grace);
    const auto first = co_await (wait() || timer.async_wait(kNoThrow));
    if (first.index() == 0) co_return std::get<0>(first);
    if (auto sent = kill(); !sent) co_return std::unexpected(std::move(sent.error()));
    co_return co_await wait();
}

Result<Exit> Child::wait_for(std::chrono::milliseconds limit) {
    using Clock = std::chrono::steady_clock;
    if (pidfd_ < 0) return never_started();
    const auto deadline = Clock::now() + limit;
    while (!try_wait()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0)
            return fail(ErrorCode::kTimeout,
                        fmt::format("process {} still runs after {} ms", pid_, limit.count()));
        pollfd descriptor{.fd = pidfd_, .events = POLLIN, .revents = 0};
        constexpr std::chrono::milliseconds kLongest{60'000};
        ::poll(&descriptor, 1, static_cast<int>(std::min(left, kLongest).count()));
    }
    return *exit_;
}

}  // namespace memtide::process

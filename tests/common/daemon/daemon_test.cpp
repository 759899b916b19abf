#include "common/daemon/daemon.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace memtide::daemon {
namespace {

// Runs `body` in a process of its own and returns its wait status.
int status_of(const std::function<void()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        body();
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
}

void wait_for_signals(int count) {
    boost::asio::io_context context;
    boost::asio::co_spawn(context, wait_for_shutdown_signal(), boost::asio::detached);
    context.poll();
    for (int i = 0; i < count; ++i) {
        ::raise(SIGTERM);
        context.run();
    }
}

TEST(Daemon, FirstSignalCompletesTheWait) {
    const int status = status_of([] { wait_for_signals(1); });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Daemon, SecondSignalEndsTheProcess) {
    const int status = status_of([] { wait_for_signals(2); });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(Daemon, WritingToAClosedPipeIsAnErrorNotTheEnd) {
    const int status = status_of([] {
        ignore_sigpipe();
        std::array<int, 2> pipe{};
        if (::pipe(pipe.data()) != 0) ::_exit(1);
        ::close(pipe[0]);
        ::_exit(::write(pipe[1], "x", 1) == -1 && errno == EPIPE ? 0 : 1);
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Daemon, TellsSystemdThatItIsReadyAndStopping) {
    std::string folder = "/tmp/memtide-daemon-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/notify";
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fd, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    notify_ready("serving");
    notify_stopping();
    ::unsetenv("NOTIFY_SOCKET");
    std::array<char, 256> text{};
    EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(::recv(fd, text.data(), text.size(), 0))),
              "READY=1\nSTATUS=serving");
    EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(::recv(fd, text.data(), text.size(), 0))),
              "STOPPING=1");
    ::close(fd);
    std::filesystem::remove_all(folder);
}

TEST(Daemon, WithoutSystemdNotificationsDoNothing) {
    ::unsetenv("NOTIFY_SOCKET");
    notify_ready("serving");
    notify_stopping();
}

TEST(Daemon, RaisesTheSoftLimitOfOpenFilesToTheHardOne) {
    const int status = status_of([] {
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 100;
        ::setrlimit(RLIMIT_NOFILE, &limit);
        raise_file_limit();
        ::getrlimit(RLIMIT_NOFILE, &limit);
        ::_exit(limit.rlim_cur == limit.rlim_max ? 0 : 1);
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace memtide::daemon

#include "common/process/child.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace memtide::process {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto kPatience = 30s;

Command shell(std::string script) {
    Command command;
    command.argv = {"sh", "-c", std::move(script)};
    return command;
}

bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

class ChildTest : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string folder_ = "/tmp/memtide-process-XXXXXX";
};

template <typename T>
T run(asio::io_context& context, asio::awaitable<T> work) {
    auto future = asio::co_spawn(context, std::move(work), asio::use_future);
    context.restart();
    context.run();
    return future.get();
}

TEST_F(ChildTest, ExitCodeIsReported) {
    auto child = Child::spawn(shell("exit 7"));
    ASSERT_TRUE(child) << child.error().message;
    const auto exit = child->wait_for(kPatience);
    ASSERT_TRUE(exit) << exit.error().message;
    EXPECT_EQ(exit->code, 7);
    EXPECT_FALSE(exit->succeeded());
    EXPECT_EQ(exit->describe(), "exited with code 7");
    EXPECT_FALSE(child->running());
    EXPECT_EQ(child->wait_for(0ms)->code, 7);
}

TEST_F(ChildTest, EndBySignalIsReported) {
    auto child = Child::spawn(shell("kill -9 $$"));
    ASSERT_TRUE(child);
    const auto exit = child->wait_for(kPatience);
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->signal, SIGKILL);
    EXPECT_EQ(exit->shell_code(), 137);
    EXPECT_EQ(exit->describe(), "ended by signal 9 (Killed)");
}

TEST_F(ChildTest, WaitsOnAnExecutor) {
    auto child = Child::spawn(shell("sleep 0.1; exit 3"));
    ASSERT_TRUE(child);
    asio::io_context context;
    const auto exit = run(context, child->wait());
    ASSERT_TRUE(exit) << exit.error().message;
    EXPECT_EQ(exit->code, 3);
    EXPECT_EQ(run(context, child->wait())->code, 3);
}

TEST_F(ChildTest, CancelledWaitLeavesTheChildRunning) {
    using namespace asio::experimental::awaitable_operators;
    auto child = Child::spawn(shell("exec sleep 600"));
    ASSERT_TRUE(child);
    asio::io_context context;
    const auto timed_wait = [&]() -> asio::awaitable<std::size_t> {
        asio::steady_timer timer(context, 20ms);
        const auto first = co_await (child->wait() || timer.async_wait(asio::as_tuple(asio::use_awaitable)));
        co_return first.index();
    };
    EXPECT_EQ(run(context, timed_wait()), 1U);
    EXPECT_TRUE(child->running());
    EXPECT_EQ(child->try_wait(), std::nullopt);
    ASSERT_TRUE(child->kill());
    EXPECT_EQ(child->wait_for(kPatience)->signal, SIGKILL);
    EXPECT_TRUE(child->terminate());  // nobody left: fine
}

TEST_F(ChildTest, StopTerminatesAndThenKills) {
    asio::io_context context;
    auto polite = Child::spawn(shell("exec sleep 600"));
    ASSERT_TRUE(polite);
    EXPECT_EQ(run(context, polite->stop(kPatience))->signal, SIGTERM);

    const std::string ready = folder_ + "/ready";
    auto stubborn = Child::spawn(shell("trap '' TERM; touch " + ready + "; while :; do sleep 0.05; done"));
    ASSERT_TRUE(stubborn);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(ready); }));
    EXPECT_EQ(run(context, stubborn->stop(50ms))->signal, SIGKILL);
}

TEST_F(ChildTest, DestructorKillsAndReaps) {
    pid_t pid = 0;
    {
        auto child = Child::spawn(shell("exec sleep 600"));
        ASSERT_TRUE(child);
        pid = child->pid();
        EXPECT_TRUE(exists(pid));
    }
    EXPECT_FALSE(exists(pid));
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD) << "no zombie is left";
}

TEST_F(ChildTest, MoveHandsTheProcessOn) {
    auto child = Child::spawn(shell("exec sleep 600"));
    ASSERT_TRUE(child);
    const pid_t pid = child->pid();
    Child other = *std::move(child);
    EXPECT_EQ(other.pid(), pid);
    EXPECT_FALSE(child->running());
    EXPECT_TRUE(exists(pid));
    auto second = Child::spawn(shell("exit 0"));
    ASSERT_TRUE(second);
    other = *std::move(second);
    EXPECT_FALSE(exists(pid));
    EXPECT_TRUE(other.wait_for(kPatience)->succeeded());
}

TEST_F(ChildTest, ProgramThatIsNotThereFails) {
    Command command;
    command.argv = {"no-such-program-here"};
    auto child = Child::spawn(command);
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().code, ErrorCode::kNotFound);
    EXPECT_NE(child.error().message.find("no-such-program-here"), std::string::npos) << child.error().message;
    command.argv = {"/nowhere/at/all"};
    EXPECT_EQ(Child::spawn(command).error().code, ErrorCode::kNotFound);
    command.argv = {folder_};
    EXPECT_EQ(Child::spawn(command).error().code, ErrorCode::kPermission);
    command.argv = {};
    EXPECT_EQ(Child::spawn(command).error().code, ErrorCode::kInvalidArgument);
    command = shell("true");
    command.working_directory = "/nowhere";
    EXPECT_NE(Child::spawn(command).error().message.find("/nowhere"), std::string::npos);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ChildTest, StreamsGoToFilesAndDescriptors) {
    const std::string out = folder_ + "/out";
    const std::string in = folder_ + "/in";
    std::ofstream(in) << "hello\n";
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    for (int i = 0; i < 2; ++i) {
        Command command = shell("cat; echo error >&2");
        command.standard_input = Stream::file(in);
        command.standard_output = Stream::file(out);
        command.standard_error = Stream::from_fd(pipe[1]);
        auto child = Child::spawn(command);
        ASSERT_TRUE(child) << child.error().message;
        ASSERT_TRUE(child->wait_for(kPatience)->succeeded());
    }
    EXPECT_EQ(read_file(out), "hello\nhello\n");
    std::array<char, 64> text{};
    EXPECT_EQ(::read(pipe[0], text.data(), text.size()), 12);
    ::close(pipe[0]);
    ::close(pipe[1]);

    Command command = shell("echo fresh");
    command.standard_output = Stream::file(out, false);
    ASSERT_TRUE(Child::spawn(command)->wait_for(kPatience)->succeeded());
    EXPECT_EQ(read_file(out), "fresh\n");
    command.standard_output = Stream::file("/nowhere/out");
    EXPECT_NE(Child::spawn(command).error().message.find("/nowhere/out"), std::string::npos);
}

TEST_F(ChildTest, EnvironmentAndFolderAreTheOnesAskedFor) {
    ::setenv("MEMTIDE_TEST_GONE", "x", 1);
    Command command = shell("echo \"$MEMTIDE_TEST_NEW,$MEMTIDE_TEST_GONE,$(pwd),$HOME\"");
    command.environment = {{"MEMTIDE_TEST_NEW", "new"}, {"MEMTIDE_TEST_GONE", std::nullopt}, {"HOME", "/h"}};
    command.working_directory = folder_;
    command.standard_output = Stream::file(folder_ + "/out");
    ASSERT_TRUE(Child::spawn(command)->wait_for(kPatience)->succeeded());
    ::unsetenv("MEMTIDE_TEST_GONE");
    EXPECT_EQ(read_file(folder_ + "/out"), "new,," + folder_ + ",/h\n");
}

TEST_F(ChildTest, OnlyPassedDescriptorsAreOpenInTheChild) {
    const int kept = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int closed = ::open("/dev/null", O_RDONLY);  // close-on-exec was forgotten
    Command command = shell("for fd in " + std::to_string(kept) + " " + std::to_string(closed) +
                            "; do test -e /proc/$$/fd/$fd && echo $fd; done; exit 0");
    command.pass_fds = {kept};
    command.standard_output = Stream::file(folder_ + "/out");
    ASSERT_TRUE(Child::spawn(command)->wait_for(kPatience)->succeeded());
    EXPECT_EQ(read_file(folder_ + "/out"), std::to_string(kept) + "\n");
    ::close(kept);
    ::close(closed);
}

TEST_F(ChildTest, SignalsIgnoredHereAreNotIgnoredThere) {
    std::signal(SIGPIPE, SIG_IGN);
    auto child = Child::spawn(shell("kill -PIPE $$; exit 0"));
    ASSERT_TRUE(child);
    EXPECT_EQ(child->wait_for(kPatience)->signal, SIGPIPE);
    std::signal(SIGPIPE, SIG_DFL);
}

TEST_F(ChildTest, DiesWithTheThreadThatSpawnedIt) {
    std::optional<Child> child;
    std::thread([&child] { child = Child::spawn(shell("exec sleep 600")).value(); }).join();
    const auto exit = child->wait_for(kPatience);
    ASSERT_TRUE(exit) << exit.error().message;
    EXPECT_EQ(exit->signal, SIGKILL);
}

TEST_F(ChildTest, WaitForGivesUpAfterItsLimit) {
    auto child = Child::spawn(shell("exec sleep 600"));
    ASSERT_TRUE(child);
    const auto exit = child->wait_for(20ms);
    ASSERT_FALSE(exit);
    EXPECT_EQ(exit.error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace memtide::process

// What the real program does while it waits for a composition.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

http::Response draining(const http::Request& request) {
    return http::json_response(
        request.method == "DELETE" ? 202 : 200,
        composition("Draining", R"x(, "waiting_for": "the agent of host0 (it has not reported yet)")x"));
}

http::Response onlining(const http::Request& request) {
    return http::json_response(request.method == "POST" ? 202 : 200, composition("Onlining"));
}

struct Interrupted {
    process::Exit exit;
    std::string said;
};

// Sends the signal once the program is waiting.
Interrupted interrupt(ScriptedManager& manager, const std::vector<std::string>& arguments, int number) {
    const std::string file = testing::TempDir() + "memtide-waiting-" + std::to_string(::getpid());
    process::Command command = memtide_command(manager.url(), arguments);
    command.standard_output = process::Stream::null();
    command.standard_error = process::Stream::file(file, false);
    // A signal ends the program wherever it is, also where a thread has ended and is not joined yet.
    const char* const options = std::getenv("TSAN_OPTIONS");
    command.environment["TSAN_OPTIONS"] =
        std::string(options == nullptr ? "" : options) + ":report_thread_leaks=0";
    auto child = process::Child::spawn(command);
    EXPECT_TRUE(child);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (manager.requests().size() < 2 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(child->signal(number));
    const auto exit = child->wait_for(std::chrono::seconds(20));
    EXPECT_TRUE(exit);
    std::ifstream in(file);
    Interrupted result{exit.value_or(process::Exit{}), {std::istreambuf_iterator<char>(in), {}}};
    ::unlink(file.c_str());
    return result;
}

TEST(Waiting, AnInterruptedComposeSaysHowItGoesOn) {
    ScriptedManager manager(onlining);
    const auto [exit, said] = interrupt(manager, {"compose", "host0", "256MiB"}, SIGINT);
    EXPECT_EQ(exit.code, 130) << said;
    EXPECT_NE(said.find("memtide: c-1 goes on without this command; 'memtide show c-1' tells how it is, "
                        "'memtide release c-1' gives it back\n"),
              std::string::npos)
        << said;
}

TEST(Waiting, ATerminatedReleaseSaysHowItGoesOn) {
    ScriptedManager manager(draining);
    const auto [exit, said] = interrupt(manager, {"release", "c-1"}, SIGTERM);
    EXPECT_EQ(exit.code, 143) << said;
    EXPECT_NE(said.find("memtide: the release of c-1 goes on without this command; 'memtide show c-1' tells"),
              std::string::npos)
        << said;
}

TEST(Waiting, ReleaseHintsOnceAtForceWhenNoAgentHasReported) {
    ScriptedManager manager(draining);
    const auto said = memtide(manager.url(), {"release", "c-1", "--timeout", "1"}).standard_error;
    const auto hint = said.find("--force does not wait for it\n");
    EXPECT_NE(hint, std::string::npos) << said;
    EXPECT_EQ(said.find("--force", hint + 1), std::string::npos) << said;
    EXPECT_EQ(memtide(manager.url(), {"release", "c-1", "--force", "--timeout", "1"})
                  .standard_error.find("does not wait"),
              std::string::npos);
}

TEST(Waiting, AManagerThatDoesNotHoldTheQuestionIsNotAskedInAHotLoop) {
    ScriptedManager manager(onlining);
    EXPECT_EQ(memtide(manager.url(), {"compose", "host0", "256MiB", "--timeout", "1"}).exit.code, 1);
    EXPECT_LE(manager.requests().size(), 8U);
}

}  // namespace
}  // namespace memtide::cli

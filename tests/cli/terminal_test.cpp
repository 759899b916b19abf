// The real program on a terminal of a known width.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

// Runs the program with standard output and error on a pseudo terminal (pty(7)); answers what it shows.
std::string on_terminal(unsigned short columns, const std::string& url,
                        const std::vector<std::string>& words) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_EQ(::grantpt(master) | ::unlockpt(master), 0);
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(terminal, 0);
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    EXPECT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
    process::Command command = memtide_command(url, words);
    command.standard_output = process::Stream::from_fd(terminal);
    command.standard_error = process::Stream::from_fd(terminal);
    auto child = process::Child::spawn(command);
    EXPECT_TRUE(child);
    ::close(terminal);
    std::string shown;
    std::array<char, 1024> piece{};
    for (ssize_t got = 0; (got = ::read(master, piece.data(), piece.size())) > 0;)
        shown.append(piece.data(), static_cast<std::size_t>(got));  // ends with EIO once nobody has it open
    ::close(master);
    EXPECT_TRUE(child->wait_for(std::chrono::seconds(20)));
    return shown;
}

std::vector<std::string> progress_lines(std::string_view shown) {
    constexpr std::string_view kRewrite = "\r\x1b[K";
    std::vector<std::string> lines;
    for (std::size_t at = 0; (at = shown.find(kRewrite, at)) != std::string_view::npos;) {
        at += kRewrite.size();
        const auto end = shown.find_first_of("\r\n", at);
        if (shown.substr(at).starts_with('[')) lines.emplace_back(shown.substr(at, end - at));
    }
    return lines;
}

std::string compose_on_terminal(unsigned short columns) {
    std::atomic<int> looks{0};
    ScriptedManager manager([&](const http::Request& request) {
        const std::string waiting = R"(, "waiting_for": ")" + std::string(300, 'x') + "\"";
        const bool done = ++looks > 3;
        return http::json_response(request.method == "POST" ? 202 : 200,
                                   composition(done ? "Online" : "Onlining", done ? "" : waiting));
    });
    return on_terminal(columns, manager.url(), {"compose", "host0", "256MiB"});
}

TEST(Terminal, ProgressFitsOnALine) {
    const auto lines = progress_lines(compose_on_terminal(50));
    EXPECT_GE(lines.size(), 2U);
    for (const std::string& line : lines) EXPECT_EQ(line.size(), 49U) << line;
}

TEST(Terminal, OfUnknownWidthIsTakenFor80Columns) {
    const auto lines = progress_lines(compose_on_terminal(0));
    EXPECT_GE(lines.size(), 2U);
    for (const std::string& line : lines) EXPECT_EQ(line.size(), 79U) << line;
}

TEST(Terminal, ListFitsAndSaysWhatItLeavesOut) {
    ScriptedManager manager([](const http::Request&) {
        const std::string note = R"("waiting_for": ")" + std::string(200, 'x') + "\"";
        return http::json_response(200, R"({"items": [{"id": "c-1", "host": "host0", "state": "Draining", )" +
                                            note +
                                            R"(}, {"id": "c-2", "state": "Released"}], "next": null})");
    });
    const std::string shown = on_terminal(90, manager.url(), {"list"});
    for (std::size_t begin = 0, end = 0; (end = shown.find("\r\n", begin)) != std::string::npos;
         begin = end + 2)
        EXPECT_LE(end - begin, 90U) << shown;
    EXPECT_NE(shown.find("1 ended: --all shows them too"), std::string::npos) << shown;
}

}  // namespace
}  // namespace memtide::cli

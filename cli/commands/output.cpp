#include "cli/commands/output.h"

#include <cstdio>

#include <boost/json/serialize.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "common/daemon/exit_code.h"

namespace memtide::cli {

void Output::text(const std::string& text) const { std::fwrite(text.data(), 1, text.size(), stdout); }

void Output::value(const boost::json::value& value) const {
    text(boost::json::serialize(value) + "\n");
    std::fflush(stdout);
}

int Output::failure(const Error& error) const {
    fmt::print(stderr, "memtide: {}\n", error.message);
    return daemon::kExitFailure;
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { erase(); }

void ProgressLine::erase() const {
    if (terminal_ && !last_.empty()) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::show(const std::string& text) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    if (terminal_)
        fmt::print(stderr, "\r\x1b[K[{:5.1f}s] {}", seconds, text);
    else if (text != last_)
        fmt::print(stderr, "[{:5.1f}s] {}\n", seconds, text);
    std::fflush(stderr);
    last_ = text;
}

}  // namespace memtide::cli

#include "common/terminal/progress_line.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "common/terminal/columns.h"
#include "common/terminal/printable.h"

namespace memtide {

ProgressLine::ProgressLine() : terminal_(terminal_columns(STDERR_FILENO).has_value()) {}

ProgressLine::~ProgressLine() { erase(); }

void ProgressLine::erase() const {
    if (terminal_ && !last_.empty()) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::show(const std::string& text) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    const std::string line = fmt::format("[{:5.1f}s] {}", seconds, printable(text));
    // Asked each time, as windows change. A full line would move the cursor to the next one.
    if (const auto columns = terminal_columns(STDERR_FILENO); terminal_)
        fmt::print(stderr, "\r\x1b[K{}", shorten(line, columns.value_or(80) - 1));
    else if (text != last_)
        fmt::print(stderr, "{}\n", line);
    std::fflush(stderr);
    last_ = text;
}

void ProgressLine::note(const std::string& text) {
    erase();
    fmt::print(stderr, "{}\n", printable(text));
}

}  // namespace memtide

#include "cli/commands/interrupt_notice.h"

#include <algorithm>
#include <array>
#include <csignal>

#include <fmt/format.h>
#include <unistd.h>

#include "common/terminal/columns.h"
#include "common/terminal/printable.h"

namespace memtide::cli {
namespace {

// Made ready before the handlers are set: a handler may only call what is async-signal-safe
// (signal-safety(7)).
std::array<char, 1024> prepared;  // NOLINT: a signal handler reaches nothing but globals
std::size_t prepared_size = 0;    // NOLINT

constexpr std::array kSignals{SIGINT, SIGTERM};

void end_process(int number) {
    (void)!write(STDERR_FILENO, prepared.data(), prepared_size);
    _exit(128 + number);
}

void handle(int number, void (*handler)(int)) {
    struct sigaction before{};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
    struct sigaction action{};
    action.sa_handler = handler;
    sigaction(number, &action, nullptr);
}

}  // namespace

InterruptNotice::InterruptNotice(const std::string& notice) {
    // A terminal has the progress line, and ^C, where the notice shall be.
    const char* const clear = terminal_columns(STDERR_FILENO) ? "\r\x1b[K" : "";
    const std::string text = fmt::format("{}memtide: {}\n", clear, printable(notice));
    prepared_size = std::min(text.size(), prepared.size());
    std::copy_n(text.begin(), prepared_size, prepared.begin());
    for (const int number : kSignals) handle(number, end_process);
}

InterruptNotice::~InterruptNotice() {
    for (const int number : kSignals) handle(number, SIG_DFL);
}

}  // namespace memtide::cli

#include "cli/commands/refreshing_screen.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/terminal/printable.h"

namespace memtide::cli {
namespace {

// XTerm Control Sequences: the alternate screen, and the cursor, which would blink about.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEraseLine = "\x1b[K";
constexpr std::string_view kEraseBelow = "\x1b[J";

winsize window() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) size.ws_row = 24;
    if (size.ws_col == 0) size.ws_col = 80;
    return size;
}

}  // namespace

RefreshingScreen::RefreshingScreen(Output& output) : output_(output) {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, number);
    ::pthread_sigmask(SIG_BLOCK, &ending, &mask_before_);
    signals_ = ::signalfd(-1, &ending, SFD_CLOEXEC);
    if (::isatty(STDIN_FILENO) != 0 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
        termios keys = before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        has_raw_keys_ = reads_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
    }
    output_.text(kEnter);
}

RefreshingScreen::~RefreshingScreen() { close(); }

void RefreshingScreen::close() {
    if (!is_open_) return;
    is_open_ = false;
    output_.text(kLeave);
    if (has_raw_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    if (signals_ >= 0) {
        // The one that has ended it is dealt with.
        signalfd_siginfo taken{};
        std::array<pollfd, 1> pending{{{.fd = signals_, .events = POLLIN, .revents = 0}}};
        while (::poll(pending.data(), 1, 0) > 0 && ::read(signals_, &taken, sizeof taken) > 0) {
        }
        ::close(signals_);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void RefreshingScreen::show(const std::string& page) {
    const winsize size = window();
    std::string text(kHome);
    std::string_view left = page;
    for (unsigned row = 0; row + 1U < size.ws_row && !left.empty(); ++row) {
        const std::string_view line = left.substr(0, left.find('\n'));
        left.remove_prefix(std::min(left.size(), line.size() + 1));
        text.append(shorten(line, size.ws_col)).append(kEraseLine).append("\r\n");
    }
    text += kEraseBelow;
    output_.text(text);
}

bool RefreshingScreen::wait_a_second() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
        if (left <= 0) return true;
        std::array<pollfd, 2> waiting{
            {{.fd = signals_, .events = POLLIN, .revents = 0},
             {.fd = reads_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
        const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(left));
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) continue;
        if (waiting[0].revents != 0) return false;
        if (waiting[1].revents != 0) {
            char key = 0;
            if (::read(STDIN_FILENO, &key, 1) <= 0) {
                reads_keys_ = false;  // nobody types there any more
                continue;
            }
            if (key == 'q' || key == 'Q') return false;
        }
    }
}

}  // namespace memtide::cli

#include "common/terminal/columns.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace memtide {

std::optional<std::size_t> terminal_columns(int fd) {
    if (isatty(fd) != 1) return std::nullopt;
    winsize size{};
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

}  // namespace memtide

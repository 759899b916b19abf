#include "cli/commands/standard_streams.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace memtide::cli {

void keep_standard_streams() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace memtide::cli

#include "cli/commands/output.h"

#include <cerrno>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/render/compositions.h"
#include "cli/render/fields.h"
#include "common/daemon/exit_code.h"
#include "common/json/write.h"
#include "common/terminal/printable.h"

namespace memtide::cli {

void Output::text(std::string_view text) {
    while (!text.empty() && is_open()) {
        const ssize_t put = write(STDOUT_FILENO, text.data(), text.size());
        if (put >= 0)
            text.remove_prefix(static_cast<std::size_t>(put));
        else if (errno != EINTR)
            write_error_ = errno;
    }
}

void Output::value(const boost::json::value& value) { text(json::write(value) + "\n"); }

int Output::failure(const Failure& failure) {
    if (json_) value(failure.problem);
    const int code = complaint(failure.message);
    if (!json_) fmt::print(stderr, "{}", render_excluded(items_of(failure.problem, "excluded")));
    return code;
}

int Output::complaint(std::string_view message) const {
    fmt::print(stderr, "memtide: {}\n", printable(message));
    return daemon::kExitFailure;
}

int Output::wrong_usage(std::string_view message, std::string_view command) const {
    (void)complaint(message);
    fmt::print(stderr, "'memtide {}{}--help' tells how it is used\n", command, command.empty() ? "" : " ");
    return daemon::kExitUsage;
}

int Output::close(int code) const {
    if (is_open() || write_error_ == EPIPE) return code;
    return complaint(fail_errno("write to", "standard output", write_error_).error().message);
}

}  // namespace memtide::cli

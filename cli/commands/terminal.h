#pragma once

#include <cstddef>
#include <optional>

namespace memtide::cli {

// How many characters a line of the terminal behind `fd` has (80 when it does not tell); nothing when there
// is no terminal.
std::optional<std::size_t> terminal_columns(int fd);

// Opens what the caller left closed of standard input, output and error in a way that using it fails as
// before: else the next socket would get the number, and be what answers are written to.
void keep_standard_streams();

}  // namespace memtide::cli

#pragma once

#include <cstddef>
#include <optional>

namespace memtide {

// How many columns a line of the terminal behind `fd` has (80 when it does not tell); nothing when there is
// no terminal.
std::optional<std::size_t> terminal_columns(int fd);

}  // namespace memtide

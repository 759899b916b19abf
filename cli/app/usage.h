#pragma once

#include <cstdint>
#include <limits>

#include <CLI/CLI.hpp>

namespace memtide::cli {

// What the parser can read, and the JSON of an answer can hold.
inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// Checks of single values; what they say comes behind the option's name.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
// Whole seconds, typed as such or with a unit as the manager reads it: 90, 90s, 5min, 2h, 7d. Transforms what
// was typed to seconds.
CLI::Validator seconds(std::uint64_t least, std::uint64_t most);
CLI::Validator key_and_value();
CLI::Validator size();

}  // namespace memtide::cli

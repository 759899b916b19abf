#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace memtide::cli {

// What is wrong with the words that `app` could not parse, as a sentence; near misses get a "did you mean".
std::string explain(const CLI::App& app, const CLI::ParseError& error);
std::string unknown_command(const CLI::App& app, std::string_view word);
// The name of the command that was chosen; empty before there is one.
std::string command_name(const CLI::App& app);

// What the parser can read, and the JSON of an answer can hold.
inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// Checks of single values; what they say comes behind the option's name.
CLI::Validator something();
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
CLI::Validator key_and_value();
CLI::Validator size();

}  // namespace memtide::cli

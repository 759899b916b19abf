#pragma once

#include <string>
#include <string_view>

namespace memtide {

// Text from a server, as it may reach a terminal: control characters, bytes that are not UTF-8 and what turns
// the writing direction become "\x1b", "\n", "\u202e"; all else stays.
std::string printable(std::string_view text);

// What of it fits into `columns` of a terminal, the last three of them "..." when something was left out.
std::string shorten(std::string_view text, std::size_t columns);

}  // namespace memtide

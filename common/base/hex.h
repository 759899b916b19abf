#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace memtide {

// "0a1bff".
std::string to_hex(std::span<const std::byte> bytes);

// Reads hexadecimal digits, two a byte, in either case; white space, ':' and ',' between bytes and a "0x"
// before one are for the reader. kInvalidArgument names what is something else, or a byte of one digit.
Result<std::vector<std::byte>> parse_hex(std::string_view text);

}  // namespace memtide

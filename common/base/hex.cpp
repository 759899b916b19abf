#include "common/base/hex.h"

#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace memtide {
namespace {

bool is_separator(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0 || c == ':' || c == ','; }
bool is_digit(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte byte : bytes)
        for (const unsigned nibble :
             {std::to_integer<unsigned>(byte) >> 4, std::to_integer<unsigned>(byte) & 0xf})
            text.push_back("0123456789abcdef"[nibble]);
    return text;
}

Result<std::vector<std::byte>> parse_hex(std::string_view text) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < text.size();) {
        if (is_separator(text[i])) {
            ++i;
            continue;
        }
        if (text.substr(i).starts_with("0x") || text.substr(i).starts_with("0X")) i += 2;
        if (i + 1 >= text.size() || !is_digit(text[i]) || !is_digit(text[i + 1]))
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("\"{}\" is not a byte of two hexadecimal digits", text.substr(i, 2)));
        unsigned value = 0;
        std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
        bytes.push_back(static_cast<std::byte>(value));
        i += 2;
    }
    return bytes;
}

}  // namespace memtide

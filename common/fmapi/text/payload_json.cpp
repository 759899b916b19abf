#include "common/fmapi/text/payload_json.h"

#include <charconv>

#include <fmt/format.h>

#include "common/base/bytes.h"

namespace memtide::fmapi::detail {

std::optional<std::uint64_t> parse_number(std::string_view text) {
    const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view digits = is_hex ? text.substr(2) : text;
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hex ? 16 : 10);
    if (error == std::errc{} && end == digits.data() + digits.size()) return value;
    if (!text.ends_with('B')) return std::nullopt;  // parse_bytes takes bare numbers, too
    const auto size = parse_bytes(text);
    return size ? std::optional(size->value) : std::nullopt;
}

std::string number_expected(std::uint64_t largest) {
    return fmt::format("must be a number of 0 to {}: 42, 0x2a, or a size as 256MiB", largest);
}

}  // namespace memtide::fmapi::detail

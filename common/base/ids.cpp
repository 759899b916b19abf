#include "common/base/ids.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace memtide {

Result<> check_name(std::string_view name) {
    const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
    if (name.empty() || name.size() > 63 || !std::ranges::all_of(name, allowed) || name.front() == '-' ||
        name.back() == '-')
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("\"{}\" is not a name: use 1 to 63 of a-z, 0-9 and -, with no - at either end",
                        name.substr(0, 80)));
    return {};
}

std::string format_serial(SerialNumber serial) { return fmt::format("{:#018x}", serial.value); }

Result<SerialNumber> parse_serial(std::string_view text) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view digits = hex ? text.substr(2) : text;
    SerialNumber serial;
    const char* const end = digits.data() + digits.size();
    const auto [stop, status] = std::from_chars(digits.data(), end, serial.value, hex ? 16 : 10);
    if (digits.empty() || status != std::errc{} || stop != end)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is not a serial number: write up to 64 bits as 0x... or in decimal",
                                text.substr(0, 80)));
    return serial;
}

std::string to_string(const RegionId& id) { return fmt::format("{}/{}", id.composition.value, id.number); }

}  // namespace memtide

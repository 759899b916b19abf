#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memtide::fmapi::test {

// Bytes written as hex digits; spaces are for the reader: bytes("01 0a ff").
inline std::vector<std::byte> bytes(std::string_view hex) {
    std::vector<std::byte> out;
    for (std::size_t i = 0; i < hex.size();) {
        if (hex[i] == ' ') {
            ++i;
            continue;
        }
        unsigned value = 0;
        std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
        out.push_back(static_cast<std::byte>(value));
        i += 2;
    }
    return out;
}

inline std::string hex(const std::vector<std::byte>& data) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (const std::byte b : data) {
        const auto value = std::to_integer<unsigned>(b);
        if (!out.empty()) out += ' ';
        out += kDigits[value >> 4];
        out += kDigits[value & 15];
    }
    return out;
}

}  // namespace memtide::fmapi::test

#include "common/base/utf8.h"

#include <algorithm>
#include <array>
#include <span>

namespace memtide {

CodePoint first_code_point(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80) return {lead, 1};
    const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
    char32_t value = lead & (0x7fU >> size);
    for (std::size_t i = 1; i < size; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xc0U) != 0x80) return {};
        value = (value << 6U) | (byte & 0x3fU);
    }
    constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = value >= 0xd800 && value <= 0xdfff;
    if (value < kLeast.at(size) || value > 0x10ffff || surrogate) return {};
    return {value, size};
}

namespace {

struct Range {
    char32_t first;
    char32_t last;
};

constexpr std::array kJoining{Range{0x0300, 0x036f}, Range{0x1ab0, 0x1aff},  Range{0x1dc0, 0x1dff},
                              Range{0x200b, 0x200f}, Range{0x20d0, 0x20ff},  Range{0xfe00, 0xfe0f},
                              Range{0xfe20, 0xfe2f}, Range{0xe0100, 0xe01ef}};
constexpr std::array kWide{Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},   Range{0x3041, 0x33ff},
                           Range{0x3400, 0x4dbf},   Range{0x4e00, 0x9fff},   Range{0xa000, 0xa4cf},
                           Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},
                           Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f},
                           Range{0x1f680, 0x1f6ff}, Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};

bool is_in(std::span<const Range> ranges, char32_t c) {
    return std::ranges::any_of(ranges, [c](const Range& r) { return c >= r.first && c <= r.last; });
}

}  // namespace

std::size_t columns_of(char32_t character) {
    if (character < 0x300) return 1;
    if (is_in(kJoining, character)) return 0;
    return is_in(kWide, character) ? 2 : 1;
}

std::size_t columns_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const CodePoint c = first_code_point(text);
        columns += c.size == 0 ? 1 : columns_of(c.value);
        text.remove_prefix(std::max<std::size_t>(c.size, 1));
    }
    return columns;
}

}  // namespace memtide

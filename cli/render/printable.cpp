#include "cli/render/printable.h"

#include <array>

#include <fmt/format.h>

namespace memtide::cli {
namespace {

struct CodePoint {
    char32_t value = 0;
    std::size_t size = 0;  // in bytes; 0: the text does not begin with UTF-8
};

// RFC 3629: neither overlong forms nor surrogates.
CodePoint first_of(std::string_view text) {
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

// C0, DEL and C1 (ECMA-48): 0x9b begins a sequence as ESC [ does.
bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

// Line separators, and the marks that let a text read backwards (Unicode UAX 9).
bool rearranges(char32_t c) {
    return c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const CodePoint c = first_of(text);
        const std::size_t size = c.size == 0 ? 1 : c.size;
        if (c.size == 0)
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
        else if (c.value == '\n')
            result += "\\n";
        else if (is_control(c.value))
            result += fmt::format("\\x{:02x}", static_cast<unsigned>(c.value));
        else if (rearranges(c.value))
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
        else
            result += text.substr(0, size);
        text.remove_prefix(size);
    }
    return result;
}

std::string shorten(std::string_view text, std::size_t columns) {
    constexpr std::string_view kMore = "...";
    if (columns <= kMore.size()) return std::string(text.substr(0, columns));
    std::size_t characters = 0;
    std::size_t kept = 0;  // bytes that leave room for kMore
    for (std::size_t at = 0; at < text.size(); ++characters) {
        if (characters == columns) return std::string(text.substr(0, kept)).append(kMore);
        const std::size_t size = first_of(text.substr(at)).size;
        at += size == 0 ? 1 : size;
        if (characters < columns - kMore.size()) kept = at;
    }
    return std::string(text);
}

}  // namespace memtide::cli

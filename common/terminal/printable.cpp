#include "common/terminal/printable.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/base/utf8.h"

namespace memtide {
namespace {

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
        const CodePoint c = first_code_point(text);
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
    if (columns_of(text) <= columns) return std::string(text);
    const bool with_more = columns > kMore.size();
    std::size_t room = with_more ? columns - kMore.size() : columns;
    std::size_t kept = 0;  // bytes
    while (kept < text.size()) {
        const CodePoint c = first_code_point(text.substr(kept));
        const std::size_t width = c.size == 0 ? 1 : columns_of(c.value);
        if (width > room) break;
        room -= width;
        kept += std::max<std::size_t>(c.size, 1);
    }
    return std::string(text.substr(0, kept)).append(with_more ? kMore : "");
}

}  // namespace memtide

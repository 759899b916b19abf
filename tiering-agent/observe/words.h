#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

// Words and numbers of the kernel's texts. Pure; whatever the text holds.
namespace memtide::agent {

// Takes the next word, up to a space or tab, off the front of `text`; empty when there is none.
inline std::string_view take_word(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(word.size());
    return word;
}

// Takes the next line, without its end, off the front of `text`, which is not empty.
inline std::string_view take_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
}

// The whole of `text` as a number; nothing when it is none or does not fit.
template <std::integral Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace memtide::agent

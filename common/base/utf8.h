#pragma once

#include <cstddef>
#include <string_view>

// UTF-8 (RFC 3629): neither overlong forms nor surrogates.
namespace memtide {

struct CodePoint {
    char32_t value = 0;
    std::size_t size = 0;  // in bytes; 0: the text does not begin with a character
};
// The character that `text`, which is not empty, begins with.
CodePoint first_code_point(std::string_view text);

// Columns that a character takes on a terminal: 0 for marks that join the one before, 2 for wide ones (the
// blocks that Unicode's EastAsianWidth calls W and F, and emoji), else 1.
std::size_t columns_of(char32_t character);
// The same of a text; a byte that is no character counts as one.
std::size_t columns_of(std::string_view text);

}  // namespace memtide

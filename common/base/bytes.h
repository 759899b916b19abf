#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide {

// A number of bytes; arithmetic is checked nowhere, so keep values below 2^63.
struct Bytes {
    std::uint64_t value = 0;

    friend constexpr auto operator<=>(Bytes, Bytes) = default;
    friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
    friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
    friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return {a.value * n}; }
    friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.value / b.value; }
    constexpr Bytes& operator+=(Bytes b) {
        value += b.value;
        return *this;
    }
    constexpr Bytes& operator-=(Bytes b) {
        value -= b.value;
        return *this;
    }
    [[nodiscard]] constexpr bool is_multiple_of(Bytes unit) const { return value % unit.value == 0; }
};

constexpr Bytes mebibytes(std::uint64_t n) { return {n << 20}; }
constexpr Bytes gibibytes(std::uint64_t n) { return {n << 30}; }

// CXL carves and decodes memory in multiples of this (CXL 3.1, 8.2.4.20: HDM decoder base and size).
inline constexpr Bytes kCxlGranule = mebibytes(256);

// Reads "268435456", "256MiB", "1.5GiB", "2 TiB", "64KiB"; powers of two only, so "256MB" is refused with a
// hint. Fails with kInvalidArgument on anything else, on a fraction of a byte, and from 2^63 on.
Result<Bytes> parse_bytes(std::string_view text);

// The shortest exact text with a binary unit: "256MiB", "1.5GiB", "4097B".
std::string format_bytes(Bytes bytes);

}  // namespace memtide

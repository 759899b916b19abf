#include "common/base/bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace memtide {
namespace {

struct Unit {
    std::string_view name;
    int shift;
};
constexpr std::array kUnits{Unit{"TiB", 40}, Unit{"GiB", 30}, Unit{"MiB", 20}, Unit{"KiB", 10}, Unit{"B", 0}};

std::unexpected<Error> not_a_size(std::string_view text, std::string_view why) {
    std::string message = "\"";
    message.append(text).append("\" is not a size: ").append(why);
    return fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view whole) {
    const std::string_view text = trim(whole);
    if (text.starts_with('-')) return not_a_size(whole, "it is negative");
    const auto digits_end = text.find_first_not_of("0123456789.");
    const std::string_view number = text.substr(0, digits_end);
    const std::string_view unit_name =
        digits_end == std::string_view::npos ? "B" : trim(text.substr(digits_end));
    if (number.empty()) return not_a_size(whole, "write it as bytes or as in \"256MiB\"");

    int shift = -1;
    for (const Unit& unit : kUnits)
        if (unit.name == unit_name) shift = unit.shift;
    if (shift < 0) {
        if (unit_name == "KB" || unit_name == "MB" || unit_name == "GB" || unit_name == "TB")
            return not_a_size(whole, "use a binary unit, such as MiB or GiB");
        return not_a_size(whole, "the unit must be B, KiB, MiB, GiB or TiB");
    }

    constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
    const char* const end = number.data() + number.size();
    std::uint64_t integer = 0;
    if (auto [stop, status] = std::from_chars(number.data(), end, integer);
        status == std::errc{} && stop == end) {
        if (integer > ((kLimit - 1) >> shift)) return not_a_size(whole, "it is larger than 8 EiB");
        return Bytes{integer << shift};
    }
    double fraction = 0;
    auto [stop, status] = std::from_chars(number.data(), end, fraction);
    if (status != std::errc{} || stop != end) return not_a_size(whole, "the number cannot be read");
    const double exact = std::ldexp(fraction, shift);
    if (exact >= std::ldexp(1.0, 63)) return not_a_size(whole, "it is larger than 8 EiB");
    if (exact != std::floor(exact)) return not_a_size(whole, "it is not a whole number of bytes");
    return Bytes{static_cast<std::uint64_t>(exact)};
}

std::string format_bytes(Bytes bytes) {
    for (const Unit& unit : kUnits) {
        const std::uint64_t scale = std::uint64_t{1} << unit.shift;
        if (bytes.value < scale) continue;
        if (bytes.value % scale == 0) return std::to_string(bytes.value / scale).append(unit.name);
        // Two binary digits behind the point are exact in decimal: .25, .5, .75.
        if (unit.shift >= 10 && bytes.value % (scale / 4) == 0) {
            static constexpr std::array<std::string_view, 4> kQuarters{"", ".25", ".5", ".75"};
            return std::to_string(bytes.value / scale)
                .append(kQuarters[(bytes.value % scale) / (scale / 4)])
                .append(unit.name);
        }
    }
    return std::to_string(bytes.value) + "B";
}

}  // namespace memtide

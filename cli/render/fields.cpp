#include "cli/render/fields.h"

#include <array>
#include <cmath>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "common/base/bytes.h"
#include "common/json/member.h"
#include "common/json/write.h"
#include "common/terminal/printable.h"

namespace memtide::cli {

namespace json = boost::json;

const json::value& member_of(const json::value& object, std::string_view key) {
    static const json::value kNull;
    const auto* const member = memtide::json::find_member(object, key);
    return member ? *member : kNull;
}

std::string text_of(const json::value& object, std::string_view key) {
    const json::value& member = member_of(object, key);
    if (member.is_null()) return "-";
    if (member.is_string()) return member.as_string().empty() ? "-" : printable(member.as_string());
    return printable(memtide::json::write(member));
}

std::string size_of(const json::value& object, std::string_view key) {
    const json::value& member = member_of(object, key);
    if (!member.is_int64() && !member.is_uint64()) return "-";
    return format_bytes(
        Bytes{member.is_uint64() ? member.get_uint64() : static_cast<std::uint64_t>(member.get_int64())});
}

std::string about_size(std::uint64_t bytes) {
    constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    constexpr double kStep = 1024;
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    // What would be rounded to 1024 is one of the next unit.
    for (; value >= kStep - 0.5 && unit + 1 < kUnits.size(); ++unit) value /= kStep;
    const bool is_exact = value >= 10 || unit == 0 || value == std::floor(value);
    return fmt::format("{:.{}f}{}", value, is_exact ? 0 : 1, kUnits[unit]);
}

std::string about_size_of(const json::value& object, std::string_view key) {
    const json::value& member = member_of(object, key);
    const bool is_size = member.is_uint64() || (member.is_int64() && member.get_int64() >= 0);
    return is_size ? about_size(member.to_number<std::uint64_t>()) : "-";
}

std::int64_t number_of(const json::value& object, std::string_view key) {
    boost::system::error_code failed;
    const auto number = member_of(object, key).to_number<std::int64_t>(failed);
    return failed ? 0 : number;
}

double real_of(const json::value& object, std::string_view key) {
    boost::system::error_code failed;
    const auto number = member_of(object, key).to_number<double>(failed);
    return failed ? 0 : number;
}

bool flag_of(const json::value& object, std::string_view key) {
    const json::value& member = member_of(object, key);
    return member.is_bool() && member.get_bool();
}

const json::array& items_of(const json::value& object, std::string_view key) {
    static const json::array kEmpty;
    const json::value& member = member_of(object, key);
    return member.is_array() ? member.get_array() : kEmpty;
}

}  // namespace memtide::cli

#include "common/base/duration.h"

#include <array>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace memtide {

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
    struct Unit {
        std::string_view name;
        std::uint64_t milliseconds;
    };
    static constexpr std::array units{Unit{"", 1'000},      Unit{"ms", 1},     Unit{"s", 1'000},
                                      Unit{"min", 60'000},  Unit{"m", 60'000}, Unit{"h", 3'600'000},
                                      Unit{"d", 86'400'000}};
    constexpr std::uint64_t kHundredYears = 86'400'000ULL * 36'525;
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc{}) {
        const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
        for (const Unit& unit : units)
            if (suffix == unit.name && number <= kHundredYears / unit.milliseconds)
                return std::chrono::milliseconds(static_cast<std::int64_t>(number * unit.milliseconds));
    }
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is not a duration such as 250ms, 60s, 5min, 2h or 7d", text));
}

}  // namespace memtide

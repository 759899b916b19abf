#include "cxl-emul/hosts/delay.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

using Microseconds = std::chrono::microseconds;

constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{
    {{"us", 1}, {"ms", 1000}, {"s", 1'000'000}, {"min", 60'000'000}, {"h", 3'600'000'000}}};
constexpr std::int64_t kLongest = std::int64_t{24} * 3600 * 1'000'000;
constexpr int kExponentialCap = 20;

}  // namespace

Random::result_type Random::operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

Microseconds Delay::draw(Random& random) const {
    switch (shape) {
        case Shape::kFixed:
            return low;
        case Shape::kUniform:
            return Microseconds(
                std::uniform_int_distribution<std::int64_t>(low.count(), high.count())(random));
        case Shape::kExponential:
            break;
    }
    if (low.count() == 0) return low;
    const double drawn =
        std::exponential_distribution<double>(1.0 / static_cast<double>(low.count()))(random);
    const double cap = static_cast<double>(low.count()) * kExponentialCap;
    return Microseconds(static_cast<std::int64_t>(std::min(drawn, cap)));
}

Result<Microseconds> parse_duration(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const auto known = std::ranges::find(kUnits, unit, &std::pair<std::string_view, std::int64_t>::first);
    const bool good = status == std::errc{} && number >= 0 && known != kUnits.end();
    if (!good)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("\"{}\" is not a time such as 250us, 20ms, 2s, 1min or 1h", text.substr(0, 40)));
    if (number > kLongest / known->second)
        return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is longer than a day", text));
    return Microseconds(number * known->second);
}

Result<Delay> parse_delay(std::string_view text) {
    constexpr std::string_view kExponential = "exp:";
    constexpr std::string_view kTo = "..";
    if (text.starts_with(kExponential)) {
        const auto mean = parse_duration(text.substr(kExponential.size()));
        if (!mean) return std::unexpected(mean.error());
        return Delay{Delay::Shape::kExponential, *mean, *mean};
    }
    const auto to = text.find(kTo);
    const auto low = parse_duration(text.substr(0, to));
    if (!low) return std::unexpected(low.error());
    if (to == std::string_view::npos) return Delay{Delay::Shape::kFixed, *low, *low};
    const auto high = parse_duration(text.substr(to + kTo.size()));
    if (!high) return std::unexpected(high.error());
    if (*high < *low)
        return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" ends before it begins", text));
    return Delay{Delay::Shape::kUniform, *low, *high};
}

}  // namespace memtide::emul

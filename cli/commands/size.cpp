#include "cli/commands/size.h"

#include <cctype>
#include <string>

#include <fmt/format.h>

namespace memtide::cli {
namespace {

bool can_be_given(const Result<Bytes>& size) {
    return size && size->value != 0 && size->is_multiple_of(kCxlGranule);
}

// "256", "256M", "256mb", "256mib" mean 256MiB as a rule. Empty when nothing that can be given comes to mind.
std::string meant_by(std::string_view text) {
    const auto unit_at = text.find_first_not_of("0123456789.");
    const std::string number(text.substr(0, unit_at));
    std::string unit;
    if (unit_at != std::string_view::npos)
        for (const char c : text.substr(unit_at))
            if (c != ' ') unit += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (const std::string_view prefix : {"M", "G", "T"}) {
        const std::string upper(prefix);
        const bool fits = unit.empty() || unit == upper || unit == upper + "B" || unit == upper + "IB";
        const auto size = parse_bytes(number + upper + "iB");
        if (fits && can_be_given(size)) return format_bytes(*size);
    }
    return {};
}

}  // namespace

Result<Bytes> composition_size(std::string_view text) {
    auto size = parse_bytes(text);
    if (can_be_given(size)) return size;
    std::string meant = meant_by(text);
    std::string message = fmt::format("\"{}\" is not a size such as 256MiB or 1.5GiB", text);
    if (size) {
        message = fmt::format("{} is not a multiple of {}", text, format_bytes(kCxlGranule));
        const Bytes above = kCxlGranule * (size->value / kCxlGranule.value + 1);
        if (size->value == 0)
            message = "a size of 0 gives nothing";
        else if (meant.empty())
            meant = format_bytes(above);
    } else if (text.starts_with('-')) {
        message = fmt::format("{} is negative; a size is at least {}", text, format_bytes(kCxlGranule));
    }
    if (!meant.empty()) message += fmt::format("; did you mean {}?", meant);
    return fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace memtide::cli

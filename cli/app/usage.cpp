#include "cli/app/usage.h"

#include <charconv>

#include <fmt/format.h>

#include "cli/commands/size.h"
#include "common/base/duration.h"

namespace memtide::cli {

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
    const auto check = [least, most](const std::string& text) -> std::string {
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc{} && stop == end && value >= least && value <= most) return {};
        return fmt::format("\"{}\" is not a whole number{}", text,
                           most == kNoLimit ? "" : fmt::format(" from {} to {}", least, most));
    };
    return {check, ""};
}

CLI::Validator seconds(std::uint64_t least, std::uint64_t most) {
    const auto read = [least, most](std::string& text) -> std::string {
        const auto time = parse_duration(text);
        if (!time) return time.error().message;
        const auto count = static_cast<std::uint64_t>(time->count());
        if (count % 1000 != 0 || count / 1000 < least || count / 1000 > most)
            return fmt::format("\"{}\" is not from {} to {} whole seconds", text, least, most);
        text = std::to_string(count / 1000);
        return {};
    };
    return {read, ""};
}

CLI::Validator key_and_value() {
    const auto check = [](const std::string& text) -> std::string {
        if (text.find('=') != std::string::npos && !text.starts_with('=')) return {};
        return fmt::format("\"{}\" is not KEY=VALUE", text);
    };
    return {check, ""};
}

CLI::Validator size() {
    const auto check = [](const std::string& text) -> std::string {
        const auto size = composition_size(text);
        return size ? "" : size.error().message;
    };
    return {check, ""};
}

}  // namespace memtide::cli

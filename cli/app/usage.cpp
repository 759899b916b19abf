#include "cli/app/usage.h"

#include <charconv>
#include <functional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "cli/commands/size.h"
#include "common/base/nearest.h"

namespace memtide::cli {
namespace {

using Names = std::set<std::string, std::less<>>;

std::string unknown(std::string_view kind, std::string_view word, const Names& known) {
    const std::string_view near = nearest_name(word, known);
    return fmt::format("unknown {} \"{}\"", kind, word) +
           (near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
}

void add_options(Names& names, const CLI::App& app) {
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.insert("--" + name);
}

std::string unknown_option(const CLI::App& app, std::string_view word) {
    Names known;
    add_options(known, app);
    for (const CLI::App* command : app.get_subcommands()) add_options(known, *command);
    return unknown("option", word.substr(0, word.find('=')), known);
}

}  // namespace

std::string unknown_command(const CLI::App& app, std::string_view word) {
    Names known;
    for (const CLI::App* command : app.get_subcommands({})) known.insert(command->get_name());
    return unknown("command", word, known);
}

std::string command_name(const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    return chosen.empty() ? "" : chosen.front()->get_name();
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
    std::vector<std::string> left = app.remaining(true);
    std::erase(left, "--");
    // A mistyped option makes its value a positional; so it explains most other complaints.
    for (const std::string& word : left)
        if (word.size() > 1 && word.starts_with('-')) return unknown_option(app, word);
    const std::string command = command_name(app);
    if (command.empty()) return left.empty() ? "a command is missing" : unknown_command(app, left.front());
    if (!left.empty() && dynamic_cast<const CLI::ExtrasError*>(&error))
        return fmt::format("{}: unexpected argument \"{}\"", command, left.front());
    return fmt::format("{}: {}", command, error.what());
}

CLI::Validator something() {
    return {[](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""};
}

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

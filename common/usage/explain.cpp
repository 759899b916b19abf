#include "common/usage/explain.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "common/base/nearest.h"
#include "common/daemon/exit_code.h"

namespace memtide {
namespace {

using Names = std::set<std::string, std::less<>>;

// The commands that were chosen, outermost first; groups of options are apps without a name.
std::vector<const CLI::App*> chosen(const CLI::App& app) {
    std::vector<const CLI::App*> path{&app};
    for (;;) {
        const CLI::App* next = nullptr;
        for (const CLI::App* one : path.back()->get_subcommands())
            if (!one->get_name().empty()) next = one;
        if (next == nullptr) return path;
        path.push_back(next);
    }
}

// Those that --help shows.
Names commands_of(const CLI::App& app) {
    Names names;
    for (const CLI::App* command : app.get_subcommands({}))
        if (!command->get_name().empty() && !command->get_group().empty()) names.insert(command->get_name());
    return names;
}

void add_options(Names& names, const CLI::App& app) {
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.insert("--" + name);
    for (const CLI::App* group : app.get_subcommands({}))
        if (group->get_name().empty()) add_options(names, *group);
}

std::string suggestion(std::string_view word, const Names& known) {
    const std::string_view near = nearest_name(word, known);
    return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

std::string unknown(std::string_view kind, std::string_view word, const Names& known) {
    return fmt::format("unknown {} \"{}\"", kind, word) + suggestion(word, known);
}

std::string unknown_option(const std::vector<const CLI::App*>& path, std::string_view word) {
    Names known;
    for (const CLI::App* app : path) add_options(known, *app);
    return unknown("option", word.substr(0, word.find('=')), known);
}

}  // namespace

std::string unknown_command(const CLI::App& app, std::string_view word) {
    return unknown("command", word, commands_of(app));
}

std::string command_name(const CLI::App& app) {
    std::string name;
    for (const CLI::App* one : chosen(app))
        if (one != &app) name += (name.empty() ? "" : " ") + one->get_name();
    return name;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
    std::vector<std::string> left = app.remaining(true);
    std::erase(left, "--");
    const std::vector<const CLI::App*> path = chosen(app);
    const std::string command = command_name(app);
    const std::string before = command.empty() ? "" : command + ": ";
    const auto is_option = [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); };
    const bool wants_command = !commands_of(*path.back()).empty();
    // Of a mistyped command no option is known.
    if (wants_command && !left.empty() && !is_option(left.front()))
        return before + unknown_command(*path.back(), left.front());
    // A mistyped option makes its value a positional; so it explains most other complaints.
    if (const auto option = std::ranges::find_if(left, is_option); option != left.end())
        return unknown_option(path, *option);
    if (wants_command && path.back()->get_require_subcommand_min() > 0)
        return before + "a command is missing";
    if (!left.empty() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
        return fmt::format("{}unexpected argument \"{}\"", before, left.front());
    return before + error.what();
}

int end_of_parsing(const CLI::App& app, const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error) == 0 ? daemon::kExitOk : daemon::kExitUsage;
    const std::string command = command_name(app);
    fmt::print(stderr, "{}: {}\n'{}{}{} --help' tells how it is used\n", app.get_name(), explain(app, error),
               app.get_name(), command.empty() ? "" : " ", command);
    return daemon::kExitUsage;
}

std::string did_you_mean(std::string_view mistyped, std::initializer_list<std::string_view> known) {
    return suggestion(mistyped, Names(known.begin(), known.end()));
}

CLI::Validator something() {
    return {[](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""};
}

}  // namespace memtide

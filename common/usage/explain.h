#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

// What every program says about words that it does not understand.
namespace memtide {

// What is wrong with the words that `app` could not parse, as a sentence that names them; near misses get a
// "did you mean". Commands may have commands of their own.
std::string explain(const CLI::App& app, const CLI::ParseError& error);
// `unknown command "WORD"`, with what was probably meant when that is near.
std::string unknown_command(const CLI::App& app, std::string_view word);
// The names of the commands that were chosen, "rack up"; empty before there is one.
std::string command_name(const CLI::App& app);

// For programs that print themselves: help and version go to standard output, everything else is explained on
// standard error behind the program's name. Answers the exit code.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& error);

// `; did you mean "NAME"?` when one of the names is near; else nothing. For values that are names.
std::string did_you_mean(std::string_view mistyped, std::initializer_list<std::string_view> known);

// The check of an option's value that it is not empty; what it says comes behind the option's name.
CLI::Validator something();

}  // namespace memtide

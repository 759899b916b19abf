#pragma once

#include <functional>
#include <string>
#include <variant>

namespace memtide::fm {

struct Options {
    std::string config;
    bool check_config = false;
    std::function<int()> command;  // when set: what to do in place of serving; answers the exit code
};

// The options of the command line, or the code to exit with: 0 after --help and --version, 2 on bad usage
// (which has been explained on standard error).
std::variant<Options, int> parse_options(int argc, const char* const* argv);

}  // namespace memtide::fm

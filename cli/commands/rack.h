#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/output.h"

namespace memtide::cli {

// What `memtide rack ...` hands on, when that was typed: the words behind "rack" as they are, as a parser
// would eat the "--" before a command. --json before it goes with it; --url is nothing to a rack.
std::optional<std::vector<std::string>> rack_arguments(const std::vector<std::string>& typed);

// Becomes `memtide-cxl-emul WORDS`, the program beside this one, which knows topology files; returns only
// when that fails.
int become_emulator(const Output& output, const std::vector<std::string>& words);
// Becomes `memtide-cxl-emul rack ARGUMENTS`, the program beside this one; returns only when that fails.
int run_rack(const Output& output, const std::vector<std::string>& arguments);

}  // namespace memtide::cli

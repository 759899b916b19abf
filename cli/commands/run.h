#pragma once

#include <string>
#include <vector>

#include "cli/commands/output.h"

namespace memtide::cli {

// Becomes this program, which lets the tiering agent see which pages it touches (libmemtide-consent.so,
// preloaded from beside this program). Where that cannot be, it runs all the same, and a line on standard
// error says why. Answers only when it cannot be run: 127 when it is not there, else 126, as shells do.
int run_with_consent(const std::vector<std::string>& command, const std::string& agent_socket,
                     Output& output);

}  // namespace memtide::cli

#pragma once

#include <string>
#include <vector>

#include "cli/commands/output.h"

namespace memtide::cli {

// Becomes `memtide-cxl-emul rack ARGUMENTS`, the program beside this one; returns only when that fails.
int run_rack(const Output& output, const std::vector<std::string>& arguments);

}  // namespace memtide::cli

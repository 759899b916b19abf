#pragma once

#include <string>

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"

namespace memtide::cli {

// The manager's fabric as SVG on standard output; answers the exit code.
int draw_topology(const ManagerClient& manager, Output& output);
// The same of a topology file; needs no manager.
int draw_topology_file(const Output& output, const std::string& file);

}  // namespace memtide::cli

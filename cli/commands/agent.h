#pragma once

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"

namespace memtide::cli {

// What the tiering agent of this machine does, as it says itself at its socket. The exit code.
int show_agent_status(const ManagerClient& agent, Output& output);

}  // namespace memtide::cli

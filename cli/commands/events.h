#pragma once

#include <cstdint>
#include <optional>

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"

namespace memtide::cli {

// Prints events after `since` (from the oldest kept on, when absent). Without `follow` it ends once no more
// have come for a moment; with it, it reconnects and resumes where it was, until it is interrupted or nobody
// reads.
int show_events(const ManagerClient& manager, Output& output, std::optional<std::uint64_t> since,
                bool follow);

}  // namespace memtide::cli

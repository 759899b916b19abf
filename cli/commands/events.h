#pragma once

#include <cstdint>
#include <optional>

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"

namespace memtide::cli {

struct EventsOptions {
    std::optional<std::uint64_t> since;  // events with larger ids only; absent: from the oldest kept on
    bool follow = false;
    EventFilter filter;
};

// Prints events. Without `follow` it ends behind the newest; with it, it reconnects and resumes where it was,
// until it is interrupted or nobody reads.
int show_events(const ManagerClient& manager, Output& output, const EventsOptions& options);

// Prints all that has happened to one composition, in order.
int show_history(const ManagerClient& manager, Output& output, const std::string& id);

}  // namespace memtide::cli

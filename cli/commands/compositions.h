#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"

namespace memtide::cli {

struct Waiting {
    bool wait = true;
    std::chrono::seconds timeout{300};
};

struct ComposeOptions {
    std::string host;
    std::string size;  // as people write it; the manager reads it
    std::optional<std::string> tenant;
    std::vector<std::string> labels;  // "key=value"
    std::optional<std::uint64_t> ttl_seconds;
    Waiting waiting;
};

// Each answers the exit code: failure also when what was waited for did not come.
int compose(const ManagerClient& manager, const Output& output, const ComposeOptions& options);
int release(const ManagerClient& manager, const Output& output, const std::string& id, bool force,
            const Waiting& waiting);
int list_compositions(const ManagerClient& manager, const Output& output);
int show_composition(const ManagerClient& manager, const Output& output, const std::string& id);

}  // namespace memtide::cli

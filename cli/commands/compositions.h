#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"
#include "cli/commands/waiting.h"

namespace memtide::cli {

struct ComposeOptions {
    std::string host;
    std::string size;  // as people write it, checked; the manager reads it
    std::optional<std::string> tenant;
    std::vector<std::string> labels;  // "key=value", checked
    std::optional<std::uint64_t> ttl_seconds;
    Waiting waiting;
};

struct ListOptions {
    bool all = false;  // also those that have ended
    std::optional<std::string> state;
    std::optional<std::string> host;
    std::optional<std::string> tenant;
    std::optional<std::string> label;  // "key" or "key=value"
    std::optional<std::string> device;
};

// Each answers the exit code: failure also when what was waited for did not come.
int compose(const ManagerClient& manager, Output& output, const ComposeOptions& options);
int release(const ManagerClient& manager, Output& output, const std::string& id, bool force,
            const Waiting& waiting);
int list_compositions(const ManagerClient& manager, Output& output, const ListOptions& options);
int show_composition(const ManagerClient& manager, Output& output, const std::string& id);

}  // namespace memtide::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

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
    std::string policy = "pack";
    std::uint64_t ways = 1;
    std::optional<std::uint64_t> max_devices;
    std::optional<std::uint64_t> max_percent_per_device;
    std::optional<std::uint64_t> max_percent_per_switch;
    bool exclusive_devices = false;
    bool use_reserve = false;
    bool reprovide = false;
    bool dry_run = false;  // only say where it would go
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
// Online again, and with the size that was asked for.
int change_composition(const ManagerClient& manager, Output& output, const std::string& id,
                       const boost::json::object& change, const Waiting& waiting);
int list_compositions(const ManagerClient& manager, Output& output, const ListOptions& options);
int show_composition(const ManagerClient& manager, Output& output, const std::string& id);

}  // namespace memtide::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"

// What the tiering agent of this machine does, as it says itself at its socket. Each answers the exit code.
namespace memtide::cli {

int show_agent_status(const ManagerClient& agent, Output& output);
// Has it read its configuration again; every mistake in it is a line of its own.
int reload_agent(const ManagerClient& agent, Output& output);
// `begin`: a new one begins first.
int show_generations(const ManagerClient& agent, Output& output, bool begin);
int show_working_sets(const ManagerClient& agent, Output& output);
int show_tiering_plan(const ManagerClient& agent, Output& output);
int explain_page(const ManagerClient& agent, Output& output, std::uint64_t pid, const std::string& address);

struct HeatOptions {
    std::optional<std::uint64_t> pid{};  // of this process alone, or
    std::string target{};                // of those of this target; else of the largest
    std::string svg{};                   // the file to draw into; empty: on standard output, in characters
};
int show_heat(const ManagerClient& agent, Output& output, const HeatOptions& options);

// Once a second until it is interrupted or q is typed; once when standard output is no terminal.
int show_top(const ManagerClient& agent, Output& output);

}  // namespace memtide::cli

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/client/manager_client.h"
#include "cli/commands/agent.h"
#include "cli/commands/compositions.h"
#include "cli/commands/events.h"
#include "cli/commands/output.h"

namespace memtide::cli {

// All commands with their options and help, and what was typed.
class CommandLine {
  public:
    CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // Does what the words ask for; answers the exit code.
    int run(int argc, char** argv);

  private:
    using Command = std::function<int(const ManagerClient&, Output&)>;

    CLI::App* add(const char* name, const char* text, const char* examples);
    void add_inventory();
    void add_topology();
    void add_compose();
    void add_placement(CLI::App* command);
    void add_resize_and_lease();
    void add_release();
    void add_lift();
    void add_list_and_show();
    void add_events();
    void add_agent();
    using AgentCommand = std::function<int(const ManagerClient& agent, Output&)>;
    CLI::App* add_agent_command(CLI::App* agent, const char* name, const char* text, const char* more,
                                AgentCommand command);
    void add_agent_heat(CLI::App* agent);
    void add_agent_explain(CLI::App* agent);
    void add_agent_run(CLI::App* agent);
    void add_history();
    void add_help();
    void add_credentials();
    void add_waiting(CLI::App* command);
    [[nodiscard]] Waiting waiting() const { return {!no_wait_, std::chrono::seconds(timeout_seconds_)}; }
    int help(Output& output) const;

    CLI::App app_{"memtide: pooled CXL memory for a rack, from the command line"};
    Command chosen_;
    // What was typed; the chosen command reads it.
    std::string url_ = "http://127.0.0.1:8080";
    std::string agent_socket_ = "/run/memtide/tiering-agent/agent.sock";
    HeatOptions heat_;
    bool begin_generation_ = false;
    std::uint64_t pid_ = 0;
    std::string address_;
    http::CredentialFiles credentials_;
    bool json_ = false;
    bool svg_ = false;
    std::string topology_file_;
    ComposeOptions compose_;
    ListOptions list_;
    std::string id_;
    std::string size_;
    std::uint64_t ttl_seconds_ = 0;
    bool force_ = false;
    bool no_wait_ = false;
    std::uint64_t timeout_seconds_ = 300;
    EventsOptions events_;
    std::vector<std::string> topic_;
};

}  // namespace memtide::cli

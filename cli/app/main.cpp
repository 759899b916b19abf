// memtide: the command line for people and scripts.
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/client/manager_client.h"
#include "cli/commands/compositions.h"
#include "cli/commands/events.h"
#include "cli/commands/inventory.h"
#include "cli/commands/output.h"
#include "cli/commands/rack.h"
#include "common/daemon/daemon.h"

namespace memtide::cli {
namespace {

constexpr const char* kFooter = R"(
Examples:
  memtide pool                            what there is, what is free
  memtide compose host0 256MiB            give 256 MiB to host0, and wait until it is a NUMA node there
  memtide list                            who has what
  memtide release c-7f3k2m9q1x            take it back: drained, unbound, erased
  memtide --json show c-7f3k2m9q1x        everything about one, for programs
  memtide events --follow                 what happens, as it happens
  memtide rack up topology.yaml           a rack of QEMU hosts behind a CXL switch

Exit codes: 0 done; 1 it failed, or did not come about in time; 2 wrong usage.)";

// What was typed; the callback of the chosen command reads it.
struct Arguments {
    std::string url = "http://127.0.0.1:8080";
    bool json = false;
    ComposeOptions compose;
    std::string id;
    bool force = false;
    std::uint64_t since = 0;
    bool follow = false;
    bool no_wait = false;
    std::uint64_t timeout_seconds = 300;

    [[nodiscard]] Waiting waiting() const { return {!no_wait, std::chrono::seconds(timeout_seconds)}; }
};

using Command = std::function<int(const ManagerClient&, const Output&)>;

void add_waiting(CLI::App* command, Arguments& arguments) {
    command->add_flag("--no-wait", arguments.no_wait, "Return as soon as the manager has accepted it");
    command->add_option("--timeout", arguments.timeout_seconds, "How many seconds to wait for it")
        ->capture_default_str()
        ->check(CLI::Range(1, 86400));
}

void add_inventory_commands(CLI::App& app, Command& chosen) {
    const auto add = [&](const char* name, const char* help, auto function) {
        app.add_subcommand(name, help)->callback([&chosen, function] { chosen = function; });
    };
    add("pool", "Capacity and what is free, by device", show_pool);
    add("hosts", "Hosts, their agents and what they have", show_hosts);
    add("switches", "CXL switches and whether they answer", show_switches);
    add("devices", "Devices and their logical devices", show_devices);
    add("topology", "What is connected to what", show_topology);
}

void add_composition_commands(CLI::App& app, Arguments& arguments, Command& chosen) {
    auto* const make = app.add_subcommand("compose", "Give pooled memory to a host");
    make->add_option("host", arguments.compose.host, "Who gets it")->required();
    make->add_option("size", arguments.compose.size, "How much, e.g. 256MiB")->required();
    make->add_option("--tenant", arguments.compose.tenant, "On whose behalf");
    make->add_option("--label", arguments.compose.labels, "KEY=VALUE, may be repeated");
    make->add_option("--ttl", arguments.compose.ttl_seconds, "Seconds after which it is released by itself");
    add_waiting(make, arguments);
    make->callback([&] {
        arguments.compose.waiting = arguments.waiting();
        chosen = [&](const auto& manager, const auto& output) {
            return compose(manager, output, arguments.compose);
        };
    });

    auto* const give_back = app.add_subcommand("release", "Take memory back: drain, unbind, erase");
    give_back->add_option("id", arguments.id, "Which composition")->required();
    give_back->add_flag("--force", arguments.force, "Do not wait for the host; its programs may lose data");
    add_waiting(give_back, arguments);
    give_back->callback([&] {
        chosen = [&](const auto& manager, const auto& output) {
            return release(manager, output, arguments.id, arguments.force, arguments.waiting());
        };
    });

    app.add_subcommand("list", "All compositions")->callback([&] { chosen = list_compositions; });
    auto* const show = app.add_subcommand("show", "Everything about one composition");
    show->add_option("id", arguments.id, "Which one")->required();
    show->callback([&] {
        chosen = [&](const auto& manager, const auto& output) {
            return show_composition(manager, output, arguments.id);
        };
    });
}

void add_events_command(CLI::App& app, Arguments& arguments, Command& chosen) {
    auto* const events = app.add_subcommand("events", "What has happened");
    events->add_flag("-f,--follow", arguments.follow, "Go on with what happens from now on");
    events->add_option("--since", arguments.since, "Only events with a larger id than this");
    events->callback([&] {
        chosen = [&](const auto& manager, const auto& output) {
            return show_events(manager, output, arguments.since, arguments.follow);
        };
    });
}

int run(int argc, char** argv) {
    CLI::App app{"memtide: pooled CXL memory for a rack, from the command line"};
    app.name("memtide");
    app.footer(kFooter);
    app.fallthrough();  // --json and --url may also stand behind the command
    app.require_subcommand(1);
    app.set_version_flag("--version", "memtide " MEMTIDE_VERSION);
    Arguments arguments;
    Command chosen;
    app.add_option("--url", arguments.url, "Where the fabric manager is")
        ->envname("MEMTIDE_URL")
        ->capture_default_str();
    app.add_flag("--json", arguments.json, "Answer in JSON, for programs");
    add_inventory_commands(app, chosen);
    add_composition_commands(app, arguments, chosen);
    add_events_command(app, arguments, chosen);
    // Listed for --help only; main() hands `rack` on before the parser sees it.
    app.add_subcommand("rack", "Racks of QEMU hosts behind a CXL switch: see 'memtide rack --help'");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? daemon::kExitOk : daemon::kExitUsage;
    }
    return chosen(ManagerClient(arguments.url), Output(arguments.json));
}

}  // namespace
}  // namespace memtide::cli

int main(int argc, char** argv) {
    memtide::daemon::ignore_sigpipe();
    // `memtide rack ...` belongs to the emulator as it was typed; the parser would eat the "--" before a
    // command.
    if (argc >= 2 && std::string_view(argv[1]) == "rack")
        return memtide::cli::run_rack(memtide::cli::Output(false), {argv + 2, argv + argc});
    return memtide::cli::run(argc, argv);
}

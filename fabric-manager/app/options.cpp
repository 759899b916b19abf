#include "fabric-manager/app/options.h"

#include <CLI/CLI.hpp>

#include "common/usage/explain.h"
#include "fabric-manager/app/certs_command.h"
#include "fabric-manager/app/token_command.h"

namespace memtide::fm {

std::variant<Options, int> parse_options(int argc, const char* const* argv) {
    Options options;
    CLI::App app{
        "Gives CXL memory of a pool to hosts: REST in front, CXL FM API and the agent channel behind.\n"
        "Describes itself at /v1/openapi.json once it runs.",
        "memtide-fabric-manager"};
    bool check_config = false;
    app.add_option("-c,--config", options.config, "Configuration file (YAML)");
    app.add_flag(
        "--check-config", check_config,
        "Only say what is wrong with the configuration and the files that it names; exit code 2 when "
        "something is");
    app.add_flag("--recover", options.recover,
                 "Start with what is left of a damaged state file although something is lost");
    app.add_option("--pcap", options.pcap,
                   "Write what is said with the switches behind what is in this file, for Wireshark and "
                   "`memtide fmapi decode`; goes before \"capture\" of the configuration")
        ->type_name("FILE")
        ->check(something());
    CLI::App* const backup = app.add_subcommand(
        "backup", "Copy the state to a file that does not exist yet; also while the manager runs");
    CLI::App* const restore = app.add_subcommand(
        "restore", "Put a backup in the place of the state, which is put aside; the manager must not run");
    for (CLI::App* const one : {backup, restore}) {
        one->fallthrough();  // --config may stand behind it
        one->add_option("FILE", options.backup_file, "The backup")->required();
    }
    app.set_version_flag("--version", "memtide-fabric-manager " MEMTIDE_VERSION);
    app.require_subcommand(0, 1);
    app.footer(
        "Exit codes: 0 after SIGTERM, SIGINT, and when it is done; 1 when it cannot run; 2 on bad usage or "
        "configuration.");
    add_token_commands(app, options.command);
    add_certs_commands(app, options.command);
    try {
        app.parse(argc, argv);
        if (!options.command && options.config.empty()) throw CLI::RequiredError("--config");
    } catch (const CLI::ParseError& error) {
        return end_of_parsing(app, error);
    }
    if (check_config) options.task = Task::kCheckConfig;
    if (backup->parsed()) options.task = Task::kBackup;
    if (restore->parsed()) options.task = Task::kRestore;
    return options;
}

}  // namespace memtide::fm

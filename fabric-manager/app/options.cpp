#include "fabric-manager/app/options.h"

#include <CLI/CLI.hpp>

#include "common/daemon/daemon.h"
#include "fabric-manager/app/certs_command.h"
#include "fabric-manager/app/token_command.h"

namespace memtide::fm {

std::variant<Options, int> parse_options(int argc, const char* const* argv) {
    Options options;
    CLI::App app{
        "Gives CXL memory of a pool to hosts: REST in front, CXL FM API and the agent channel behind.\n"
        "Describes itself at /v1/openapi.json once it runs.",
        "memtide-fabric-manager"};
    app.add_option("-c,--config", options.config, "Configuration file (YAML)");
    app.add_flag("--check-config", options.check_config,
                 "Only say what is wrong with the configuration; exit code 2 when something is");
    app.set_version_flag("--version", "memtide-fabric-manager " MEMTIDE_VERSION);
    app.require_subcommand(0, 1);
    app.footer("Exit codes: 0 after SIGTERM, SIGINT; 1 when it cannot run; 2 on bad usage or configuration.");
    add_token_commands(app, options.command);
    add_certs_commands(app, options.command);
    try {
        app.parse(argc, argv);
        if (!options.command && options.config.empty()) throw CLI::RequiredError("--config");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? daemon::kExitOk : daemon::kExitUsage;
    }
    return options;
}

}  // namespace memtide::fm

// memtide: the command line for people and scripts.
#include "cli/app/command_line.h"
#include "cli/commands/output.h"
#include "cli/commands/rack.h"
#include "cli/commands/standard_streams.h"
#include "cli/fmapi/command_line.h"
#include "common/daemon/daemon.h"

int main(int argc, char** argv) {
    using namespace memtide;
    cli::keep_standard_streams();
    daemon::ignore_sigpipe();
    if (argc < 1) return daemon::kExitUsage;
    if (const auto arguments = cli::rack_arguments({argv + 1, argv + argc}))
        return cli::run_rack(cli::Output(false), *arguments);
    if (auto arguments = cli::fmapi_arguments({argv + 1, argv + argc}))
        return cli::FmapiCommandLine().run(*std::move(arguments));
    return cli::CommandLine().run(argc, argv);
}

#include <exception>
#include <functional>
#include <iostream>

#include <CLI/CLI.hpp>

#include "common/daemon/exit_code.h"
#include "common/usage/explain.h"
#include "cxl-emul/app/draw_command.h"
#include "cxl-emul/app/fault_command.h"
#include "cxl-emul/app/hosts_command.h"
#include "cxl-emul/app/switch_command.h"
#include "cxl-emul/app/validate_command.h"
#include "cxl-emul/rack/commands.h"

// memtide-cxl-emul: CXL hardware in software. Each subcommand adds itself and says what runs when it is
// chosen.
int main(int argc, char** argv) {
    using namespace memtide;
    CLI::App app{"Emulates CXL switches and, with QEMU, the hosts behind them", "memtide-cxl-emul"};
    app.set_version_flag("--version", "memtide-cxl-emul " MEMTIDE_VERSION);
    app.require_subcommand(1);
    std::function<int()> chosen;
    emul::add_switch_command(app, chosen);
    emul::add_hosts_command(app, chosen);
    emul::add_fault_command(app, chosen);
    emul::add_rack_commands(app, chosen);
    emul::add_validate_command(app, chosen);
    emul::add_draw_command(app, chosen);
    try {
        app.parse(argc, argv);
        return chosen();
    } catch (const CLI::ParseError& e) {
        return end_of_parsing(app, e);
    } catch (const std::exception& e) {
        std::cerr << "memtide-cxl-emul: " << e.what() << '\n';
        return daemon::kExitFailure;
    }
}

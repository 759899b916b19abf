#include "cxl-emul/app/draw_command.h"

#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "common/daemon/exit_code.h"
#include "common/diagram/svg.h"
#include "cxl-emul/switch/topology.h"
#include "cxl-emul/switch/topology_picture.h"

namespace memtide::emul {
namespace {

int run_draw(const std::string& file) {
    const auto topology = load_topology(file);
    if (!topology) {
        std::cerr << topology.error().message << '\n';
        return daemon::kExitUsage;
    }
    std::cout << diagram::to_svg(picture_of(*topology)) << std::flush;
    return std::cout.good() ? daemon::kExitOk : daemon::kExitFailure;
}

}  // namespace

void add_draw_command(CLI::App& app, std::function<int()>& chosen) {
    auto file = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("draw", "Draw a topology file, as SVG on standard output");
    command->add_option("FILE", *file, "Topology file (YAML)")->required();
    command->footer(
        "Example: draw config/topologies/sparse-pod.yaml > pod.svg\n"
        "`memtide topology --svg` draws the fabric of a manager.");
    command->callback([file, &chosen] { chosen = [file] { return run_draw(*file); }; });
}

}  // namespace memtide::emul

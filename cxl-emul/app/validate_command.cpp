#include "cxl-emul/app/validate_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/daemon/exit_code.h"
#include "cxl-emul/rack/rack_plan.h"
#include "cxl-emul/switch/topology_findings.h"

namespace memtide::emul {
namespace {

// What an emulated machine cannot be, wherever its run folder is.
Result<> fits_into_qemu(const Topology& topology, const HostConfig& host) {
    const auto plan = plan_host(topology, host, {}, "/run/memtide/hosts/" + host.name.value);
    if (!plan) return std::unexpected(plan.error());
    return {};
}

int run_validate(const std::vector<std::string>& files) {
    bool all_good = true;
    for (const std::string& file : files) {
        const TopologyFindings findings = examine_topology(file, fits_into_qemu);
        std::cout << explain(findings);
        all_good = all_good && findings.is_good();
    }
    std::cout.flush();
    return all_good ? daemon::kExitOk : daemon::kExitUsage;
}

}  // namespace

void add_validate_command(CLI::App& app, std::function<int()>& chosen) {
    auto files = std::make_shared<std::vector<std::string>>();
    CLI::App* command =
        app.add_subcommand("validate", "Explain every mistake in topology files, and what to do about it");
    command->add_option("FILE", *files, "Topology files (YAML)")->required();
    command->footer(
        "All mistakes are told at once, each as FILE:LINE:COLUMN with the line itself. A remark is no "
        "mistake.\n"
        "Exit code: 0 when all files are good, else 2.\n"
        "Examples:\n"
        "  validate my-rack.yaml\n"
        "  validate config/topologies/*.yaml");
    command->callback([files, &chosen] { chosen = [files] { return run_validate(*files); }; });
}

}  // namespace memtide::emul

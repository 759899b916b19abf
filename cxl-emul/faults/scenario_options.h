#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cxl-emul/faults/scenario.h"

namespace memtide::emul {

// --scenario and --scenario-speed, of every command that runs emulated hardware.
struct ScenarioOptions {
    std::string file;  // empty: none
    double speed = 1;
};

// `counted_from` says when the scenario's times begin: "the start".
void add_scenario_options(CLI::App& command, ScenarioOptions& options, std::string_view counted_from);

// Nothing without a file. Errors as load_scenario(): their message is for people as it is.
Result<std::optional<Scenario>> chosen_scenario(const ScenarioOptions& options, const Topology& topology);

}  // namespace memtide::emul

#include "cxl-emul/faults/scenario_options.h"

#include <utility>

#include <fmt/format.h>

namespace memtide::emul {

void add_scenario_options(CLI::App& command, ScenarioOptions& options, std::string_view counted_from) {
    command.add_option(
        "--scenario", options.file,
        fmt::format("Faults with the times at which they begin (YAML, docs/faults.md), counted "
                    "from {}",
                    counted_from));
    command.add_option("--scenario-speed", options.speed, "How many times faster than the file says")
        ->check(CLI::Range(0.001, 1000.0))
        ->capture_default_str();
}

Result<std::optional<Scenario>> chosen_scenario(const ScenarioOptions& options, const Topology& topology) {
    if (options.file.empty()) return std::nullopt;
    auto loaded = load_scenario(options.file, &topology);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    return *std::move(loaded);
}

}  // namespace memtide::emul

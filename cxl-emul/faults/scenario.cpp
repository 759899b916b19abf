#include "cxl-emul/faults/scenario.h"

#include <random>
#include <utility>

#include <fmt/format.h>

#include "common/config/yaml.h"
#include "cxl-emul/faults/fault_table.h"
#include "cxl-emul/faults/read_fault.h"

namespace memtide::emul {
namespace {

constexpr std::size_t kMostFaults = 10'000;

Result<Scenario> read_scenario(const YamlDocument& document, const Topology* topology) {
    Scenario scenario;
    const YamlMap root = document.root();
    if (const auto seed = root.get("seed")) scenario.seed = seed->integer(0, UINT64_MAX);
    const YamlValue list = root.require("scenario");
    const std::vector<YamlValue> items = list.list();
    if (list.is_list() && items.empty()) list.reject("has no faults: - {at: 2s, fault: link-down, port: 3}");
    if (items.size() > kMostFaults) {
        list.reject(fmt::format("has {} faults, {} are the most", items.size(), kMostFaults));
    } else {
        for (const YamlValue& item : items) {
            const YamlMap map = item.map();
            ScheduledFault next;
            if (const auto at = map.get("at")) next.at = std::chrono::milliseconds(at->milliseconds());
            next.fault = read_fault(map, topology);
            const bool draws = use_of(row_of(next.fault.kind), "seed") != KeyUse::kNone;
            if (draws && !next.fault.seed) next.fault.seed = seed_of(scenario.seed, scenario.faults.size());
            scenario.faults.push_back(std::move(next));
        }
    }
    if (auto checked = document.check(); !checked) return std::unexpected(checked.error());
    return scenario;
}

}  // namespace

std::uint64_t seed_of(std::uint64_t scenario_seed, std::size_t index) {
    std::mt19937_64 random(scenario_seed);
    random.discard(index);
    return random();
}

Result<Scenario> load_scenario(const std::string& path, const Topology* topology) {
    auto document = YamlDocument::load(path);
    if (!document) return std::unexpected(document.error());
    return read_scenario(*document, topology);
}

Result<Scenario> parse_scenario(std::string_view text, std::string name, const Topology* topology) {
    auto document = YamlDocument::parse(text, std::move(name));
    if (!document) return std::unexpected(document.error());
    return read_scenario(*document, topology);
}

}  // namespace memtide::emul

#include "cxl-emul/switch/cascade_check.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

using UpstreamPort = std::pair<SwitchId, std::uint8_t>;

// Which upstream port of its own switch leads to the cable that ends at this upstream port.
std::optional<UpstreamPort> port_above(const Topology& topology, const UpstreamPort& below) {
    const PortConfig* end = topology.find_switch(below.first)->port(below.second);
    for (const SwitchConfig& config : topology.switches)
        for (const PortConfig& port : config.ports) {
            if (!port.cascade || port.cascade->below != below.first ||
                port.cascade->upstream_port != below.second)
                continue;
            const auto up = std::ranges::find(config.ports, end->host, &PortConfig::host);
            if (up != config.ports.end()) return UpstreamPort(config.name, up->id);
        }
    return std::nullopt;
}

// Whether the way up from this upstream port comes to a host in the end.
bool comes_to_a_host(const Topology& topology, UpstreamPort port) {
    for (std::size_t steps = 0; steps <= topology.switches.size(); ++steps) {
        const auto above = port_above(topology, port);
        if (!above) return true;
        port = *above;
    }
    return false;
}

class CascadeChecker {
  public:
    explicit CascadeChecker(const Topology& topology) : topology_(topology) {}

    void check(const YamlMap& map, const SwitchConfig& above, const CascadeConfig& cascade) {
        const YamlValue name = map.require("switch");
        const SwitchConfig* below = topology_.find_switch(cascade.below);
        if (below == nullptr) {
            name.reject(fmt::format("there is no switch \"{}\"", cascade.below.value));
            return;
        }
        const YamlValue at = map.require("upstream_port");
        const PortConfig* end = below->port(cascade.upstream_port);
        if (end == nullptr || !end->host) {
            at.reject(fmt::format("port {} of {} is not an upstream port: it has no host",
                                  cascade.upstream_port, below->name.value));
            return;
        }
        if (std::ranges::find(above.ports, end->host, &PortConfig::host) == above.ports.end())
            name.reject(fmt::format("host \"{}\" of that port has no upstream port at {}", end->host->value,
                                    above.name.value));
        const auto [first, is_new] = cabled_.try_emplace({below->name, end->id}, at.where());
        if (!is_new)
            at.reject(fmt::format("port {} of {} is cabled already, at {}", end->id, below->name.value,
                                  first->second));
        else if (below->name == above.name || !comes_to_a_host(topology_, {below->name, end->id}))
            name.reject(fmt::format("{} would be below itself", below->name.value));
    }

  private:
    const Topology& topology_;
    std::map<UpstreamPort, std::string> cabled_;  // and where it stands
};

}  // namespace

void check_cascades(const YamlMap& root, const Topology& topology) {
    const auto switches = root.get("switches");
    if (!switches) return;
    CascadeChecker checker(topology);
    const std::vector<YamlValue> items = switches->list();
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::vector<YamlValue> ports = items[i].map().require("ports").list();
        for (std::size_t j = 0; j < ports.size(); ++j)
            if (const auto& cascade = topology.switches[i].ports[j].cascade)
                checker.check(ports[j].map(), topology.switches[i], *cascade);
    }
}

}  // namespace memtide::emul

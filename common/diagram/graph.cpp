#include "common/diagram/graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace memtide::diagram {
namespace {

// All nodes in one row of numbers: hosts, then switches, then devices.
class Graph {
  public:
    explicit Graph(const Fabric& fabric)
        : first_switch_(fabric.hosts.size()),
          first_device_(first_switch_ + fabric.switches.size()),
          neighbours_(first_device_ + fabric.devices.size()),
          position_(neighbours_.size()) {
        const Names names(fabric);
        for (std::size_t s = 0; s < fabric.switches.size(); ++s)
            for (const Port& port : fabric.switches[s].ports) {
                connect(first_switch_ + s, names.host(port.host), 0);
                connect(first_switch_ + s, names.device(port.device), first_device_);
                connect(first_switch_ + s, names.one_switch(port.below), first_switch_);
            }
        for (std::size_t h = 0; h < fabric.hosts.size(); ++h)
            for (const DirectDevice& direct : fabric.hosts[h].direct)
                connect(h, names.device(direct.device), first_device_);
        for (const Network& network : fabric.networks)
            for (std::size_t i = 1; i < network.hosts.size(); ++i)
                if (const auto first = names.host(network.hosts[0]); first != Names::npos)
                    connect(first, names.host(network.hosts[i]), 0);
    }

    [[nodiscard]] std::vector<Part> parts() {
        std::vector<Part> parts;
        std::vector<bool> seen(neighbours_.size());
        for (std::size_t start = 0; start < neighbours_.size(); ++start) {
            if (seen[start]) continue;
            std::vector<std::size_t> reached{start};
            seen[start] = true;
            for (std::size_t next = 0; next < reached.size(); ++next)
                for (const std::size_t other : neighbours_[reached[next]])
                    if (!seen[other]) {
                        seen[other] = true;
                        reached.push_back(other);
                    }
            std::ranges::sort(reached);
            parts.push_back(in_good_order(reached));
        }
        return parts;
    }

  private:
    void connect(std::size_t one, std::size_t other, std::size_t first) {
        if (other == Names::npos) return;
        neighbours_[one].push_back(first + other);
        neighbours_[first + other].push_back(one);
    }

    // Each layer again and again by the mean place of its neighbours, from 0 to 1 (barycentre method,
    // Sugiyama 1981): few lines cross then.
    Part in_good_order(const std::vector<std::size_t>& nodes) {
        std::vector<std::vector<std::size_t>> layers(3);
        for (const std::size_t node : nodes)
            layers[node < first_switch_ ? 0 : node < first_device_ ? 1 : 2].push_back(node);
        for (const auto& layer : layers) place(layer);
        constexpr int kSweeps = 6;
        for (int sweep = 0; sweep < kSweeps; ++sweep)
            for (const std::size_t which : {2U, 1U, 0U, 1U}) {
                arrange(layers[which]);
                place(layers[which]);
            }
        Part part;
        part.hosts = layers[0];
        for (const std::size_t node : layers[1]) part.switches.push_back(node - first_switch_);
        for (const std::size_t node : layers[2]) part.devices.push_back(node - first_device_);
        return part;
    }

    void place(const std::vector<std::size_t>& layer) {
        for (std::size_t i = 0; i < layer.size(); ++i)
            position_[layer[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(layer.size());
    }

    void arrange(std::vector<std::size_t>& layer) const {
        std::vector<std::pair<double, std::size_t>> wanted;
        for (const std::size_t node : layer) {
            double sum = 0;
            for (const std::size_t other : neighbours_[node]) sum += position_[other];
            const auto count = static_cast<double>(neighbours_[node].size());
            wanted.emplace_back(count == 0 ? position_[node] : sum / count, node);
        }
        std::ranges::stable_sort(wanted, {}, &std::pair<double, std::size_t>::first);
        std::ranges::transform(wanted, layer.begin(), &std::pair<double, std::size_t>::second);
    }

    std::size_t first_switch_;
    std::size_t first_device_;
    std::vector<std::vector<std::size_t>> neighbours_;
    std::vector<double> position_;
};

}  // namespace

Names::Names(const Fabric& fabric) {
    for (std::size_t i = 0; i < fabric.hosts.size(); ++i) hosts_.emplace(fabric.hosts[i].name, i);
    for (std::size_t i = 0; i < fabric.switches.size(); ++i) switches_.emplace(fabric.switches[i].name, i);
    for (std::size_t i = 0; i < fabric.devices.size(); ++i) devices_.emplace(fabric.devices[i].name, i);
}

std::size_t Names::find(const Index& in, const std::string& name) {
    const auto found = name.empty() ? in.end() : in.find(name);
    return found == in.end() ? npos : found->second;
}

std::vector<std::size_t> levels_of(const Fabric& fabric) {
    const Names names(fabric);
    std::vector<std::size_t> levels(fabric.switches.size());
    // Each turn settles one more level.
    for (std::size_t turn = 1; turn < fabric.switches.size(); ++turn)
        for (std::size_t s = 0; s < fabric.switches.size(); ++s)
            for (const Port& port : fabric.switches[s].ports)
                if (const std::size_t below = names.one_switch(port.below); below != Names::npos)
                    levels[below] = std::max(levels[below], std::min(levels[s] + 1, turn));
    return levels;
}

std::vector<Part> parts_of(const Fabric& fabric) { return Graph(fabric).parts(); }

}  // namespace memtide::diagram

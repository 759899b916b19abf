#include "tiering-agent/hotplug/interleave.h"

#include <algorithm>

namespace memtide::agent {

const Window* window_of(const Memdev& memdev, const std::string& name) {
    const auto found = std::ranges::find(memdev.ram_windows, name, &Window::name);
    return found == memdev.ram_windows.end() ? nullptr : &*found;
}

std::vector<const Memdev*> interleave_order(const std::vector<const Memdev*>& memdevs, const Window& window) {
    std::vector<std::vector<const Memdev*>> at_bridge(window.ways);
    for (const Memdev* memdev : memdevs) {
        const Window* own = window_of(*memdev, window.name);
        if (own == nullptr || own->position >= window.ways) return {};
        at_bridge[own->position].push_back(memdev);
    }
    std::vector<const Memdev*> order;
    for (std::size_t row = 0; row < at_bridge.front().size(); ++row)
        for (const auto& column : at_bridge)
            if (row < column.size()) order.push_back(column[row]);
    const bool even = std::ranges::all_of(
        at_bridge, [&](const auto& column) { return column.size() == at_bridge.front().size(); });
    return even ? order : std::vector<const Memdev*>{};
}

}  // namespace memtide::agent

#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/diagram/fabric.h"

// Who is connected with whom, and who best stands beside whom. Pure.
namespace memtide::diagram {

// How many cables there are above each switch, at most: 0 for those that no other one has below it. Switches
// that are below each other, which cannot be, count as if the last cable were not there.
std::vector<std::size_t> levels_of(const Fabric& fabric);

// What is connected with each other, by layer: indices in the order in which they are best drawn.
struct Part {
    std::vector<std::size_t> hosts;
    std::vector<std::size_t> switches;
    std::vector<std::size_t> devices;
};

// Finds things by name.
class Names {
  public:
    explicit Names(const Fabric& fabric);
    // Index in the list; npos when there is none of that name.
    static constexpr std::size_t npos = static_cast<std::size_t>(-1);
    [[nodiscard]] std::size_t host(const std::string& name) const { return find(hosts_, name); }
    [[nodiscard]] std::size_t one_switch(const std::string& name) const { return find(switches_, name); }
    [[nodiscard]] std::size_t device(const std::string& name) const { return find(devices_, name); }

  private:
    using Index = std::unordered_map<std::string, std::size_t>;
    static std::size_t find(const Index& in, const std::string& name);
    Index hosts_;
    Index switches_;
    Index devices_;
};

// In the order of their first hosts (or switches, or devices).
std::vector<Part> parts_of(const Fabric& fabric);

}  // namespace memtide::diagram

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiering-agent/hotplug/state.h"

// How the addresses of a region are spread over its memdevs (CXL 3.1, 9.13.1). Pure.
namespace memtide::agent {

// The window of that name that reaches the memdev; nullptr when none does.
const Window* window_of(const Memdev& memdev, const std::string& name);

// Memdevs in the order of their targets: the host bridges that the window interleaves take turns. Empty when
// the window does not reach all of them, or not as many at each bridge.
std::vector<const Memdev*> interleave_order(const std::vector<const Memdev*>& memdevs, const Window& window);

struct Interleave {
    unsigned ways = 1;
    unsigned granularity = 256;  // bytes

    // Which target has the byte at this offset of the region.
    [[nodiscard]] unsigned target_at(std::uint64_t offset) const {
        return static_cast<unsigned>(offset / granularity % ways);
    }
    friend bool operator==(Interleave, Interleave) = default;
};

}  // namespace memtide::agent

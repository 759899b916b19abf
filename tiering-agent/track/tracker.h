#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/policy/heat_map.h"

// Ways to see which pages of another process are touched.
namespace memtide::agent {

// The tier of each NUMA node, by its number; PageHeat::kNowhere for nodes of none.
using TierOfNode = std::vector<std::uint8_t>;

// What a look came to.
struct Look {
    std::uint64_t present_pages = 0;
    std::uint64_t touched_pages = 0;
    std::uint64_t touched_slow_pages = 0;  // of these, not in tier 0
};

// One way. Processes may go away at any time: that is kNotFound. Not thread safe.
class Tracker {
  public:
    using Visit = std::function<void(std::uint64_t page, std::span<const PageSeen> seen)>;

    virtual ~Tracker() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual std::string_view sees() const = 0;  // "writes", "reads and writes"

    // What a touch of a page costs its process, the first time in a window, as measured on this machine.
    [[nodiscard]] virtual std::chrono::nanoseconds touch_cost() const = 0;
    // Memory has come or gone.
    virtual Result<> refresh() = 0;
    // A window begins: what is touched from now on is seen by the next look.
    virtual Result<> begin(int pid) = 0;
    // The window ends for these ranges of addresses. `visit` gets what is present, by ascending page number;
    // what it does not get is not present.
    virtual Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                              const Visit& visit) = 0;
};

// Which pages were written to, by the kernel's soft-dirty bits (Documentation/admin-guide/mm/soft-dirty.rst).
// Each first write to a page in a window costs the process a page fault of about 1 us. Needs root, and
// CONFIG_MEM_SOFT_DIRTY: kUnavailable where the kernel has none.
Result<std::unique_ptr<Tracker>> make_soft_dirty_tracker(Files& files);

}  // namespace memtide::agent

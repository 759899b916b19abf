#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tiering-agent/hotplug/state.h"

// Decides what to do next. Pure: the same input always gives the same plan, and there is no memory besides
// what the system shows, so an agent that was killed at any step goes on from there.
namespace memtide::agent {

enum class ActionKind {
    kCreateRegion,     // remember it, then make an empty ram region in `window`
    kConfigureRegion,  // capacity of `decoders`, geometry, targets, commit; what is already set is left
    kEnableRegion,     // bind the region driver, which makes the dax device
    kAwaitDax,         // the dax device is missing: load dax_cxl
    kReadBack,         // read samples of `dax`, which no driver has yet, and remember what they show
    kBindKmem,         // give `dax` to the kmem driver: it becomes memory blocks
    kOnlineBlocks,     // online `blocks` movable
    kRezoneBlocks,     // `blocks` are online in a kernel zone: offline, then online movable
    kOfflineBlocks,    // drain and offline `blocks`
    kUnbindKmem,       // take `dax` from kmem; only when its blocks are offline
    kDestroyRegion,    // decommit and delete `region`
    kForgetRegion,     // its record is stale
};
std::string_view to_string(ActionKind kind);

struct Action {
    ActionKind kind{};
    RegionId id{};  // "leftover-..." for clean-up of what no composition asks for
    std::vector<SerialNumber> serials{};
    std::vector<std::string> memdevs{};
    std::string window{};
    unsigned granularity = 256;  // of the interleave, in bytes
    std::string region{};
    std::vector<std::string> decoders{};  // of the memdevs, in interleave order
    std::string dax{};
    Bytes size{};
    AddressRange range{};
    std::vector<std::uint64_t> blocks{};
    bool force = false;
    bool release = false;  // on its way down because it was asked back
    std::optional<WallTime> deadline{};
    // With it, a dax device that appears is kept from becoming system RAM by itself.
    std::optional<Verification> verify{};

    friend bool operator==(const Action&, const Action&) = default;
};

// What the last attempts at a region's next action taught; kept by the caller, see note_result().
struct Note {
    ActionKind kind{};
    int failures = 0;  // in a row, of this kind
    Finding error{};
    std::vector<Holder> holders{};
};
using Notes = std::map<RegionId, Note>;

// From this many failures in a row on, a region that cannot go online counts as failed (it is still
// tried).
inline constexpr int kFailuresUntilFailed = 5;

struct RegionPlan {
    ObservedRegion observed{};
    std::optional<Action> next{};  // none: nothing to do, or only the system can go on
};

struct Plan {
    std::vector<RegionPlan> regions{};  // in the order of the desired list
    std::vector<Action> cleanups{};     // leftovers of this agent
    std::vector<Finding> warnings{};
};

// Whether an action clears up behind something that no composition asks for.
bool is_leftover(const RegionId& id);

Plan make_plan(const Desired& desired, const Seen& seen, const Notes& notes, WallTime now);

}  // namespace memtide::agent

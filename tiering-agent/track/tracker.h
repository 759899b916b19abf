#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/policy/targets.h"
#include "tiering-agent/track/damon_events.h"
#include "tiering-agent/track/memory_events.h"

// Ways to see which pages of another process are touched.
namespace memtide::agent {

// The tier of each NUMA node, by its number; PageHeat::kNowhere for nodes of none.
using TierOfNode = std::vector<std::uint8_t>;

// What a look came to.
struct Look {
    std::uint64_t present_pages = 0;
    std::uint64_t touched_pages = 0;       // in a window, on the average of the windows that it ends
    std::uint64_t touched_slow_pages = 0;  // of these, not in tier 0
    // The same, were every touch of a window counted, where a tracker knows the first ones (most_pages).
    std::optional<std::uint64_t> all_touched_pages{};
    // What looks untouched is untouched, and not only unwritten.
    bool sees_reads = true;
    // Single pages in huge ones that were touched, at random among all touches of these: where a tracker has
    // addresses. Some of them, the same ones again, in any order.
    std::vector<std::uint64_t> touched_in_huge{};
    // From the next look on it is seen in another way: what was seen so far is no measure for it.
    bool begins_anew = false;
    // What each page costs its process that it touches until the next window begins, as measured on this
    // machine.
    std::chrono::nanoseconds touch_cost{};
};

// What a window is to be like for one process.
struct WindowWish {
    std::chrono::milliseconds length{};
    std::uint64_t area_pages = 0;  // what its mappings span, without the largest holes
    bool mostly_huge = false;      // huge pages have most of its memory
    // More than this need not be seen touched: where the order of touches is known, the first ones count.
    std::uint64_t most_pages = std::numeric_limits<std::uint64_t>::max();
    std::chrono::microseconds budget{};       // processor time that looking at this process may take at most
    std::chrono::microseconds disturbance{};  // that the window before was for the process
};

// In how many of so many windows each region was accessed.
struct Glance {
    std::vector<DamonRegion> regions;  // by ascending address; none when nothing came of it
    unsigned windows = 0;
};

// Tells, seldom exactly and at little cost, what of a process is touched: between the windows of a tracker,
// to see whether it is time for one. Not thread safe.
class Sentinel {
  public:
    virtual ~Sentinel() = default;
    // Errors as of Tracker.
    virtual Result<> glance(int pid, const WindowWish& wish) = 0;
    // How long to wait before end_glance().
    [[nodiscard]] virtual std::chrono::milliseconds glance_duration() const = 0;
    virtual Result<Glance> end_glance(int pid) = 0;
};

// One way. Processes may go away at any time: that is kNotFound. Not thread safe.
class Tracker {
  public:
    using Visit = std::function<void(std::uint64_t page, std::span<const PageSeen> seen)>;

    virtual ~Tracker() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual std::string_view sees() const = 0;  // "writes", "reads and writes"

    // Of the kernel's threads, for this tracker, since the last call.
    virtual std::chrono::microseconds take_kernel_time() { return {}; }
    // Null: it has none.
    [[nodiscard]] virtual Sentinel* sentinel() { return nullptr; }
    // Whether it knows which of a process's huge pages were touched first in a window.
    [[nodiscard]] virtual bool ranks_huge_pages() const { return false; }
    // Whether a window begins and ends for all pages alike however long a look takes.
    [[nodiscard]] virtual bool is_sharp() const { return false; }
    // Memory has come or gone.
    virtual Result<> refresh() = 0;
    // How many processes can be watched in one window.
    [[nodiscard]] virtual std::size_t most_at_once() const { return std::numeric_limits<std::size_t>::max(); }
    // How long to wait between begin() and look() for windows of that length, once begun.
    [[nodiscard]] virtual std::chrono::milliseconds duration(std::chrono::milliseconds window) const {
        return window;
    }
    // A window, or several, one after the other, begin: what is touched from now on is seen by the next look.
    virtual Result<> begin(int pid, const WindowWish& wish) = 0;
    // They end for these ranges of addresses. `visit` gets what is present, by ascending page number; what it
    // does not get is not present.
    virtual Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                              const Visit& visit) = 0;
};

// Which pages were written to, by the kernel's soft-dirty bits (Documentation/admin-guide/mm/soft-dirty.rst).
// Each first write to a page in a window costs the process a page fault of about 1 us. Of huge pages, all of
// which may be written to within a millisecond, the order of these faults is looked at (FirstTouches), where
// there are perf events. Needs root, and CONFIG_MEM_SOFT_DIRTY: kUnavailable where the kernel has none.
Result<std::unique_ptr<Tracker>> make_soft_dirty_tracker(Files& files);

// Which pages were read or written, by the kernel's data access monitor
// (Documentation/admin-guide/mm/damon/usage.rst) and its trace event: accessed bits of single pages as long
// as the memory that is watched is not large, of one at random in each region beyond. Costs a process nothing
// but the TLB misses of the pages that it touches. Needs root, CONFIG_DAMON_SYSFS, CONFIG_DAMON_VADDR, perf
// events and tracefs; kUnavailable without, or while somebody else uses the monitor. What an agent left
// behind that was killed is taken over.
Result<std::unique_ptr<Tracker>> make_damon_tracker(Files& files);

// Which pages were read or written, page by page, of processes that have consented (`memtide agent run`): the
// kernel protects them from reads and writes, and each first touch in a window costs the process a page fault
// (userfaultfd(2), "Read-Write Protection" in Documentation/admin-guide/mm/userfaultfd.rst). begin() answers
// kUnavailable for a process that has not. Private mappings of files, and what the program has registered
// with a userfaultfd of its own, are not seen and left where they are. Needs root and Linux 7.3 with
// CONFIG_USERFAULTFD_RWP: kUnavailable without.
Result<std::unique_ptr<Tracker>> make_rwp_tracker(Files& files);

// `consented` for those that have consented, as long as windows cost them so little that `slowdown` (as of
// TieringConfig) allows one a minute; `rest`, which may be null, for all others.
std::unique_ptr<Tracker> make_consent_tracker(std::unique_ptr<Tracker> consented,
                                              std::unique_ptr<Tracker> rest, double slowdown);

// The events with which this processor samples memory accesses, tried on memory of this process. Needs root.
// kUnavailable where it cannot, as in most guests.
Result<std::vector<MemoryEvent>> try_memory_events(const Files& files);

// Which pages were read or written, by samples of loads and stores that the processor takes (PEBS, IBS;
// tiering-agent/track/memory_events.h): page by page, at no cost for memory that is not touched. `glancer`,
// which may be null, lends its sentinel.
Result<std::unique_ptr<Tracker>> make_sample_tracker(Files& files, const std::vector<MemoryEvent>& events,
                                                     std::unique_ptr<Tracker> glancer);

// Which pages were touched, as far as the kernel's NUMA balancing asks
// (Documentation/admin-guide/sysctl/kernel.rst, numa_balancing): it takes away the access to some memory of a
// process now and then, in mode 2 to such in slower tiers only, and each page that is touched then is a page
// fault, of which perf's software event has the address. Costs nothing beside what the kernel does anyway;
// where it has not asked nothing is seen. For watching (mode `observe`) a machine that the kernel tiers.
// kUnavailable while it does not balance. Needs root and perf events.
Result<std::unique_ptr<Tracker>> make_hint_fault_tracker(Files& files);

// Soft-dirty bits for processes of which writes tell enough and are not too dear, the other for the rest.
// `slowdown` as of TieringConfig.
std::unique_ptr<Tracker> make_auto_tracker(std::unique_ptr<Tracker> writes, std::unique_ptr<Tracker> accesses,
                                           double slowdown);

// As the configuration has it. kUnavailable when there is no such way on this machine, or none at all, and
// why not.
Result<std::unique_ptr<Tracker>> make_tracker(Files& files, const TieringConfig& config);

}  // namespace memtide::agent

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/error.h"
#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/track/perf_ring.h"

namespace memtide::agent {

// In which order pages are touched first after a window has begun, where the first touch of a page costs a
// page fault: the kernel's software event for these has the address and the time of each. What is touched
// often is touched early. So the order tells huge pages apart that all have been touched long before a window
// of any length that can be waited for is over. Needs root and perf events. Not thread safe.
class FirstTouches {
  public:
    // kUnavailable or kPermission without perf events, or where they have no addresses (tried).
    static Result<FirstTouches> open();

    // From now on those of this process count. Whoever makes pages fault does so after this, for the hottest
    // are touched again at once.
    void begin(int pid);

    // The first ones of a window.
    struct Early {
        std::unordered_set<std::uint64_t> pages;   // numbers (address >> 12)
        std::unordered_set<std::uint64_t> groups;  // aligned groups of kPagesPerHuge that these are in
        // Of each group that was touched, early or not, the very first page.
        std::unordered_map<std::uint64_t, std::uint64_t> first_pages;
    };
    // Of these ranges of addresses, which ascend. Groups are taken in until they have `most_pages` pages
    // together, at least one; of those in `small` single pages are. The window ends for all processes with
    // the first call after begin().
    Early end(int pid, std::span<const VirtualRange> ranges, std::uint64_t most_pages,
              const std::unordered_set<std::uint64_t>& small = {});

  private:
    explicit FirstTouches(std::vector<PerfRing> rings) : rings_(std::move(rings)) {}
    using Clock = std::chrono::steady_clock;
    struct Touch {
        std::chrono::nanoseconds at{};  // of Clock
        std::uint64_t page = 0;
    };
    struct Window {
        std::chrono::nanoseconds begun{};
        std::vector<Touch> touches{};
    };
    void collect();

    std::vector<PerfRing> rings_;    // one a processor
    std::map<int, Window> windows_;  // by pid
    bool is_on_ = false;
};

}  // namespace memtide::agent

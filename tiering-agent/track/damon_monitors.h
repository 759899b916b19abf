#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/process/child.h"
#include "common/sysfs/files.h"
#include "tiering-agent/track/damon_events.h"
#include "tiering-agent/track/perf_ring.h"

namespace memtide::agent {

// The kernel's data access monitor (DAMON), through sysfs (Documentation/admin-guide/mm/damon/usage.rst): one
// kdamond for each process that is watched, on for some windows and off again. All of them are this object's;
// when the program that has it is killed, a shell turns them off, and the next one takes them over. Not
// thread safe.
class DamonMonitors {
  public:
    static constexpr unsigned kMost = 32;  // at once

    // Needs root. kUnavailable without CONFIG_DAMON_SYSFS, CONFIG_DAMON_VADDR, perf events or tracefs, or
    // while somebody else uses the monitor.
    static Result<DamonMonitors> claim(Files& files);
    ~DamonMonitors();
    DamonMonitors(DamonMonitors&&) noexcept;
    DamonMonitors& operator=(DamonMonitors&&) = delete;

    struct Wish {
        std::chrono::milliseconds window{};  // between a check of a region and the next
        unsigned windows = 1;
        std::uint64_t regions = 0;
    };
    // kNotFound: no such process; kExhausted: too many at once.
    Result<> begin(int pid, const Wish& wish);

    struct Seen {
        std::vector<DamonRegion>
            regions;           // by ascending address; none when it did not come to an end in time
        unsigned windows = 0;  // that each was checked in
        std::chrono::microseconds kernel_time{};  // of the kernel's thread
    };
    // Ends what was begun, at once if its windows are over; waits for them else, and a second or two at most
    // for the kernel to go over its regions. kNotFound when nothing was begun.
    Result<Seen> end(int pid);
    // How long from begin() until end() need not wait, for the longest of those that were begun.
    [[nodiscard]] std::chrono::milliseconds duration() const;

    // Nanoseconds that the kernel takes to check a region or to prepare its check, as measured so far.
    [[nodiscard]] double region_cost() const { return region_cost_; }

  private:
    struct Monitor {
        std::size_t number = 0;
        int thread = 0;  // of the kernel
        Wish wish;
        PerfRing ring;
        DamonAggregation aggregation;
        std::chrono::steady_clock::time_point deadline;
    };
    DamonMonitors(Files& files, DamonEventLayout layout, std::uint64_t event)
        : files_(&files), layout_(layout), event_(event) {}
    Result<> set_up(std::size_t number, int pid, const Wish& wish);
    void collect(Monitor& monitor) const;
    std::chrono::microseconds turn_off(const Monitor& monitor);
    void learn_cost(const Monitor& monitor, std::chrono::microseconds time);

    Files* files_;  // null: moved from
    DamonEventLayout layout_;
    std::uint64_t event_;
    std::map<int, Monitor> monitors_;  // by pid
    double region_cost_ = 4'000;
    // Turns all of them off when this program ends in whatever way: it holds the other end of a pipe.
    std::optional<process::Child> guard_;
    int guarded_ = -1;
};

}  // namespace memtide::agent

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "tests/bench/tiering/stalls.h"

namespace memtide::bench {

// The JSON lines of a load, which figures.h reads; each function prints one on the standard output.

struct StartLine {
    pid_t pid = 0;  // of the process whose pages these are
    std::size_t pages = 0;
    std::size_t hot_pages = 0;
    std::size_t fast_capacity_pages = 0;
    std::size_t phases = 1;
    double copy_bytes_per_second = 0;
    std::size_t fast_pages = 0;
    std::size_t slow_pages = 0;
    std::string look;  // how pages are looked up
};
void print_start(const StartLine& line);

struct SampleLine {
    double seconds = 0;  // since accesses began
    unsigned phase = 0;
    double hit = 0;
    double oracle = 0;
    std::size_t fast_pages = 0;
    std::size_t slow_pages = 0;
    std::uint64_t moved_pages = 0;
    std::uint64_t undone_pages = 0;
    double look_seconds = 0;
};

struct SummaryLine {
    double seconds = 0;
    std::uint64_t moved_pages = 0;
    std::uint64_t undone_pages = 0;
    double look_cpu_share = 0;
    std::string wrong;  // with the data; empty: nothing
};

// Prints lines of a load, with its speed and stalls since the line before, the counters of /proc/vmstat, and
// what `watched` (0: nobody) has used.
class Reporter {
  public:
    explicit Reporter(pid_t watched) : watched_(watched) {}

    // All accesses and stalls since the start; the longest stall since the last line.
    void print(const SampleLine& line, std::uint64_t accesses, const StallCounts& stalls,
               std::uint64_t longest_ns);
    static void print(const SummaryLine& line, std::uint64_t accesses, const StallCounts& stalls);

  private:
    pid_t watched_;
    StallCounts stalls_before_;
    std::uint64_t accesses_before_ = 0;
    double seconds_before_ = 0;
};

}  // namespace memtide::bench

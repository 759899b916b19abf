#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace memtide::bench {

// What memtide-tiering-load said at one time.
struct Sample {
    double seconds = 0;  // since it began to access memory
    unsigned phase = 0;
    double hit = 0;     // share of accesses that go to the fast node
    double oracle = 0;  // the same with the best pages there
    double ops_per_second = 0;
    std::uint64_t moved_pages = 0;                  // so far
    std::uint64_t undone_pages = 0;                 // of these, back within a minute
    std::uint64_t fast_bytes = 0;                   // of the load, on the fast node
    std::map<std::string, std::uint64_t> counters;  // of /proc/vmstat
    std::optional<double> watched_cpu_seconds;      // of the agent
    std::uint64_t watched_resident_bytes = 0;
};

struct LoadRun {
    std::uint64_t hot_bytes = 0;
    std::uint64_t fast_capacity_bytes = 0;
    double copy_bytes_per_second = 0;
    std::vector<Sample> samples;  // in order of time, at least two
    double stall_p999_us = 0;
};

// Reads the lines of a load. kProtocol names the line that is not one, or what is missing: its end, or a data
// check that it did not pass.
Result<LoadRun> parse_load_run(std::string_view lines);

// One phase of a load: from a change of what is hot to the next one.
struct PhaseFigures {
    double seconds = 0;
    double first_hit = 0;   // as the phase begins
    double steady_hit = 0;  // median of the last third of its time
    double oracle = 0;
    // Until the hit ratio is first at or above 95 % of steady_hit; nothing when that is no more than what the
    // phase began with, so that nothing was recovered.
    std::optional<double> recovery_seconds;
    double lost_seconds = 0;  // the area between oracle and hit: seconds of all accesses to the slow node
};
std::vector<PhaseFigures> phase_figures(const LoadRun& run);

// What no mover can avoid to lose in a phase: everything that it begins without, for as long as it takes to
// see it (`detect_seconds`), then half of that while `hot_bytes` are copied, since it gets better meanwhile.
double unavoidable_seconds(const LoadRun& run, const PhaseFigures& phase, double detect_seconds);

// Increase of a counter of /proc/vmstat from the first sample at or after `from_seconds` to the last one.
std::uint64_t counted(const LoadRun& run, const std::string& counter, double from_seconds = 0);

// Of a whole run; what it has no data for is nothing.
struct RunFigures {
    double hit_over_oracle = 0;                 // steady, mean of all phases
    double hit = 0;                             // steady, mean of all phases
    double oracle = 0;                          // mean of all phases
    std::optional<double> convergence_seconds;  // recovery of the first phase
    std::optional<double> recovery_seconds;     // mean of the others
    std::optional<double> hit_after_shift;      // mean over the time of all phases but the first
    double regret_seconds = 0;                  // lost_seconds of all phases
    std::optional<double> regret_over_unavoidable;
    double bytes_moved = 0;            // by anybody, as the kernel counts
    double bytes_moved_after_30s = 0;  // the same, a minute, from the 30th second on
    double failed_moves = 0;           // share of attempts
    double wasted_moves = 0;           // share of the load's moves that were undone within a minute
    double stall_p999_ms = 0;
    double ops_per_second = 0;                // median
    std::optional<double> agent_cpu_percent;  // of one processor, from start to end
    std::optional<double> agent_cpu_seconds;
    std::optional<double> agent_resident_mb;  // the most
};
RunFigures run_figures(const LoadRun& run, double detect_seconds);

// Of a list that is not empty.
double median(std::vector<double> values);

}  // namespace memtide::bench

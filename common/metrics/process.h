#pragma once

#include <string>

#include "common/metrics/registry.h"

namespace memtide::metrics {

// What Prometheus' client libraries tell of every process (process_resident_memory_bytes, process_open_fds,
// process_max_fds, process_threads, process_cpu_seconds_total, process_start_time_seconds), read from /proc
// at each render(), and memtide_build_info with the version. What cannot be read keeps its last value.
void add_process_metrics(Registry& registry, const std::string& program, const std::string& version);

// Resident memory of a process in bytes, 0 when it is not there; for benchmarks too.
double resident_bytes(int pid);
// CPU time that a process has used, in seconds; 0 when it is not there.
double cpu_seconds(int pid);

}  // namespace memtide::metrics

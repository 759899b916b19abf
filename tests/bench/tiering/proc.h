#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace memtide::bench {

// Counters of pages that move, by name: those of /proc/vmstat (proc_vmstat(5)) that begin with "pgmigrate",
// "pgpromote", "pgdemote" or "numa_". Lines that are not "NAME NUMBER" are passed over.
std::map<std::string, std::uint64_t> migration_counters(std::string_view vmstat);

// What a process has used.
struct ProcessCost {
    double cpu_seconds = 0;
    std::uint64_t resident_bytes = 0;
};
// Of the text of /proc/PID/stat; nothing when it is not that.
std::optional<ProcessCost> process_cost(std::string_view stat, long ticks_per_second, long page_bytes);

// The same, read now. Empty or nothing when it cannot be read, as for a process that has ended.
std::map<std::string, std::uint64_t> read_migration_counters();
std::optional<ProcessCost> read_process_cost(pid_t pid);

}  // namespace memtide::bench

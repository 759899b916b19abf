#include "tests/bench/tiering/proc.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

namespace memtide::bench {
namespace {

std::string contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

bool is_of_interest(std::string_view name) {
    return name.starts_with("pgmigrate") || name.starts_with("pgpromote") || name.starts_with("pgdemote") ||
           name.starts_with("numa_");
}

}  // namespace

std::map<std::string, std::uint64_t> migration_counters(std::string_view vmstat) {
    std::map<std::string, std::uint64_t> counters;
    while (!vmstat.empty()) {
        const std::string_view line = vmstat.substr(0, vmstat.find('\n'));
        vmstat.remove_prefix(std::min(vmstat.size(), line.size() + 1));
        const auto space = line.find(' ');
        if (space == std::string_view::npos || !is_of_interest(line)) continue;
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
        if (parsed.ec == std::errc() && parsed.ptr == line.data() + line.size())
            counters[std::string(line.substr(0, space))] = value;
    }
    return counters;
}

std::optional<ProcessCost> process_cost(std::string_view stat, long ticks_per_second, long page_bytes) {
    // The name, in parentheses, may have any characters; proc_pid_stat(5) counts the fields.
    const auto name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) return std::nullopt;
    std::istringstream fields{std::string(stat.substr(name_end + 1))};
    std::string ignored;
    for (int field = 3; field <= 13; ++field) fields >> ignored;
    std::uint64_t user = 0;
    std::uint64_t system = 0;
    fields >> user >> system;
    for (int field = 16; field <= 23; ++field) fields >> ignored;
    std::uint64_t resident = 0;
    if (!(fields >> resident)) return std::nullopt;
    return ProcessCost{
        .cpu_seconds = static_cast<double>(user + system) / static_cast<double>(ticks_per_second),
        .resident_bytes = resident * static_cast<std::uint64_t>(page_bytes)};
}

std::map<std::string, std::uint64_t> read_migration_counters() {
    return migration_counters(contents("/proc/vmstat"));
}

std::optional<ProcessCost> read_process_cost(pid_t pid) {
    return process_cost(contents(fmt::format("/proc/{}/stat", pid)), sysconf(_SC_CLK_TCK),
                        sysconf(_SC_PAGESIZE));
}

}  // namespace memtide::bench

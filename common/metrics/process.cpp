#include "common/metrics/process.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace memtide::metrics {
namespace {

std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// The fields of /proc/PID/stat behind the name, which may hold spaces: field 3 of proc(5) is the first.
std::vector<std::string> stat_fields(int pid) {
    const std::string text = read("/proc/" + std::to_string(pid) + "/stat");
    const auto name_end = text.rfind(')');
    if (name_end == std::string::npos) return {};
    std::istringstream words(text.substr(name_end + 1));
    return {std::istream_iterator<std::string>(words), {}};
}

constexpr std::size_t kUserTime = 14 - 3;  // numbers of proc(5)
constexpr std::size_t kSystemTime = 15 - 3;
constexpr std::size_t kThreads = 20 - 3;
constexpr std::size_t kStartTime = 22 - 3;
constexpr std::size_t kResident = 24 - 3;

double field(const std::vector<std::string>& fields, std::size_t index) {
    return index < fields.size() ? std::strtod(fields[index].c_str(), nullptr) : 0;
}

double ticks() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

double open_descriptors() {
    std::error_code error;
    double count = -1;  // the one that reads the folder
    for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
         it.increment(error))
        ++count;
    return count;
}

// When the machine booted, in seconds since the epoch.
double boot_time() {
    std::istringstream lines(read("/proc/stat"));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
    return 0;
}

}  // namespace

double resident_bytes(int pid) {
    return field(stat_fields(pid), kResident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double cpu_seconds(int pid) {
    const auto fields = stat_fields(pid);
    return (field(fields, kUserTime) + field(fields, kSystemTime)) / ticks();
}

void add_process_metrics(Registry& registry, const std::string& program, const std::string& version) {
    registry
        .gauge("memtide_build_info", "Always 1; what runs is in the labels.",
               {{"program", program}, {"version", version}})
        .set(1);
    const int self = getpid();
    registry.gauge("process_start_time_seconds", "When the process started, since the epoch.")
        .set(boot_time() + field(stat_fields(self), kStartTime) / ticks());
    registry.before_render([&registry, self] {
        const auto fields = stat_fields(self);
        registry.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.")
            .set(resident_bytes(self));
        registry.gauge("process_threads", "Threads of the process.").set(field(fields, kThreads));
        registry.counted("process_cpu_seconds_total", "CPU time used, by user and system.")
            .set(cpu_seconds(self));
        registry.gauge("process_open_fds", "Open file descriptors.").set(open_descriptors());
        rlimit limit{};
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
            registry.gauge("process_max_fds", "How many file descriptors it may open.")
                .set(static_cast<double>(limit.rlim_cur));
    });
}

}  // namespace memtide::metrics

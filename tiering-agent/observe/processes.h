#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/sysfs/files.h"

// The processes of this machine, from /proc (proc(5)).
namespace memtide::agent {

// Tells a process from a later one with the same pid.
struct ProcessId {
    int pid = 0;
    std::uint64_t start_time = 0;  // since boot, in clock ticks (field 22 of /proc/PID/stat)

    friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

struct Process {
    ProcessId id{};
    int parent = 0;                      // pid
    std::optional<std::uint32_t> uid{};  // effective; none when hidden
    bool is_kernel_thread = false;
    std::string comm{};     // at most 15 bytes, any
    std::string exe{};      // path; empty when it cannot be read; without the " (deleted)" of a replaced file
    std::string command{};  // arguments with spaces between, at most kCommandLimit bytes
    std::string cgroup{};   // path in the cgroup v2 hierarchy, "/system.slice/redis.service"; else empty
    std::string unit{};     // the innermost systemd unit: "redis.service", "session-3.scope"; else empty
    // Nodes that its cpuset lets it have memory of; nothing when that cannot be read.
    std::optional<std::set<int>> allowed_nodes{};
    Bytes rss{};                           // as stat has it: some dozen pages off
    std::chrono::milliseconds cpu_time{};  // user and system, all threads, since its start

    friend bool operator==(const Process&, const Process&) = default;
};

inline constexpr std::size_t kCommandLimit = 4096;

// Whether a cpuset that allows these nodes, or is not known, lets a process have memory of one of those.
// Pure.
inline bool may_have(const std::optional<std::set<int>>& allowed, const std::vector<int>& nodes) {
    return !allowed || std::ranges::any_of(nodes, [&](int node) { return allowed->contains(node); });
}

// What /proc/PID/stat tells. Times in clock ticks, rss in pages.
struct ProcessStat {
    int pid = 0;
    std::string comm{};
    char state = '?';
    int parent = 0;
    std::uint64_t flags = 0;  // PF_*
    std::uint64_t minor_faults = 0;
    std::uint64_t user_ticks = 0;
    std::uint64_t system_ticks = 0;
    std::uint64_t start_time = 0;
    std::uint64_t rss_pages = 0;
    // Where the program's code and stack began: other values are another program (execve). 0 when hidden.
    std::uint64_t start_code = 0;
    std::uint64_t start_stack = 0;

    friend bool operator==(const ProcessStat&, const ProcessStat&) = default;
};

// Nothing when the text is no such line. The comm may hold spaces, parentheses and line ends. Pure.
std::optional<ProcessStat> parse_stat(std::string_view text);
// Of /proc/PID/stat, as it is now; nothing when there is no such process.
std::optional<ProcessStat> read_stat(const Files& files, int pid);
// kNotFound when it has ended, also when its pid is another's by now. What was read of a pid before is of
// this process then.
Result<> check_same(const Files& files, ProcessId process);

struct CgroupMembership {
    std::string path{};
    std::string unit{};

    friend bool operator==(const CgroupMembership&, const CgroupMembership&) = default;
};
// /proc/PID/cgroup: path of the line "0::", and the last *.service or *.scope in it. Without cgroup v2, or
// when systemd does not use it (hybrid), the unit comes from the line "name=systemd". Pure.
CgroupMembership parse_cgroup(std::string_view text);

// NUL-separated arguments as one line; other control characters become '?'. Pure.
std::string command_line(std::string_view arguments);

// Reads all processes again and again. What is constant is kept: kernel threads need one file a pass, others
// too, but their owner, cgroup and command line, which can change at any time, are read anew
//   * on each of the first kYoungPasses passes, since units and shells move what they have just started,
//   * at once after an execve (also the executable), and
//   * every kRefreshPasses passes else, not all processes in the same pass.
// Measured with 3,000 idle processes: 33 us each in the first pass, 22 while they are young, then 9.
// Not thread safe. `files` outlives it.
class ProcessTable {
  public:
    static constexpr unsigned kYoungPasses = 3;
    static constexpr unsigned kRefreshPasses = 8;

    explicit ProcessTable(const Files& files) : files_(files) {}

    // One pass: every process that is there, by pid, without zombies and those that vanished meanwhile. A
    // file that is hidden leaves its fields empty. Fails only when /proc cannot be listed or shows no process
    // at all.
    Result<std::vector<Process>> read();

  private:
    struct Known {
        Process process;
        std::uint64_t start_code = 0;
        std::uint64_t start_stack = 0;
        unsigned passes = 0;
    };
    [[nodiscard]] std::optional<Known> look_at(int pid) const;
    void read_identity(Known& known) const;

    const Files& files_;
    std::map<int, Known> known_;
};

}  // namespace memtide::agent

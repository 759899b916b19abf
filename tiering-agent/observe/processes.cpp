#include "tiering-agent/observe/processes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "tiering-agent/observe/nodes.h"
#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD, include/linux/sched.h

Bytes pages_to_bytes(std::uint64_t pages) {
    static const auto page_size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return pages < (1ULL << 50) ? Bytes{pages * page_size} : Bytes{};
}

std::chrono::milliseconds ticks_to_time(std::uint64_t ticks) {
    static const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    constexpr std::uint64_t kMost = 1ULL << 50;
    return std::chrono::milliseconds{std::min(ticks, kMost) * 1000 / per_second};
}

std::string without_deleted(std::string path) {
    static constexpr std::string_view kDeleted = " (deleted)";
    if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
    return path;
}

// Of /proc/PID/status (proc_pid_status(5)).
void read_status(std::string_view status, Process& process) {
    while (!status.empty()) {
        std::string_view line = take_line(status);
        const std::string_view name = take_word(line);
        if (name == "Uid:") {  // real, effective, saved, filesystem
            take_word(line);
            if (const auto uid = whole_number<std::uint32_t>(take_word(line))) process.uid = uid;
        } else if (name == "Mems_allowed_list:") {
            if (auto nodes = parse_number_list(take_word(line))) process.allowed_nodes = *std::move(nodes);
        }
    }
}

std::string last_unit(std::string_view path) {
    std::string unit;
    while (!path.empty()) {
        const std::string_view part = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(path.size(), part.size() + 1));
        if (part.ends_with(".service") || part.ends_with(".scope")) unit = part;
    }
    return unit;
}

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view text) {
    const auto open = text.find('(');
    const auto close = text.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
        return std::nullopt;
    ProcessStat stat{.comm = std::string(text.substr(open + 1, close - open - 1))};
    std::string_view before = text.substr(0, open);
    const auto pid = whole_number<int>(take_word(before));

    // Field N of proc(5) is at N - 3 here.
    constexpr std::size_t kFields = 26;
    std::array<std::string_view, kFields> fields;
    std::string_view rest = text.substr(close + 1);
    for (std::string_view& field : fields) field = take_word(rest);
    if (!pid || *pid < 0 || fields[0].size() != 1) return std::nullopt;
    stat.pid = *pid;
    stat.state = fields[0].front();
    const auto parent = whole_number<int>(fields[1]);
    const auto start_time = whole_number<std::uint64_t>(fields[19]);
    if (!parent || !start_time) return std::nullopt;
    stat.parent = *parent;
    stat.start_time = *start_time;
    const auto number = [&fields](std::size_t field) {
        return whole_number<std::uint64_t>(fields[field - 3]).value_or(0);
    };
    stat.flags = number(9);
    stat.minor_faults = number(10);
    stat.user_ticks = number(14);
    stat.system_ticks = number(15);
    stat.rss_pages = number(24);
    stat.start_code = number(26);
    stat.start_stack = number(28);
    return stat;
}

CgroupMembership parse_cgroup(std::string_view text) {
    CgroupMembership membership;
    std::string_view systemd;
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        constexpr std::string_view kUnified = "0::";
        constexpr std::string_view kSystemd = ":name=systemd:";
        if (line.starts_with(kUnified))
            membership.path = line.substr(kUnified.size());
        else if (const auto at = line.find(kSystemd); at != std::string_view::npos)
            systemd = line.substr(at + kSystemd.size());
    }
    membership.unit = last_unit(membership.path);
    if (membership.unit.empty()) membership.unit = last_unit(systemd);
    return membership;
}

std::string command_line(std::string_view arguments) {
    // Programs that change their title leave NULs behind it.
    while (!arguments.empty() && arguments.back() == '\0') arguments.remove_suffix(1);
    std::string line(arguments.substr(0, kCommandLimit));
    for (char& one : line) {
        const auto code = static_cast<unsigned char>(one);
        if (code == 0)
            one = ' ';
        else if (code < 0x20 || code == 0x7f)
            one = '?';
    }
    return line;
}

std::optional<ProcessStat> read_stat(const Files& files, int pid) {
    const auto text = files.read(fmt::format("proc/{}/stat", pid));
    return text ? parse_stat(*text) : std::nullopt;
}

Result<> check_same(const Files& files, ProcessId process) {
    const auto stat = read_stat(files, process.pid);
    if (stat && stat->start_time == process.start_time) return {};
    return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", process.pid));
}

Result<std::vector<Process>> ProcessTable::read() {
    std::vector<Process> processes;
    processes.reserve(known_.size() + 64);
    std::map<int, Known> now;
    for (const std::string& name : files_.list("proc")) {
        const auto pid = whole_number<int>(name);
        if (!pid || *pid <= 0) continue;
        if (auto known = look_at(*pid)) now.insert_or_assign(*pid, *std::move(known));
    }
    if (now.empty())
        return fail(ErrorCode::kNotFound,
                    fmt::format("no process can be seen in {}; is it mounted?", files_.absolute("proc")));
    for (const auto& [pid, known] : now) processes.push_back(known.process);
    known_ = std::move(now);
    return processes;
}

std::optional<ProcessTable::Known> ProcessTable::look_at(int pid) const {
    auto stat = read_stat(files_, pid);
    for (int attempt = 0; stat && attempt < 2; ++attempt) {
        if (stat->state == 'Z' || stat->state == 'X') return std::nullopt;
        Known known;
        const ProcessId id{pid, stat->start_time};
        const auto before = known_.find(pid);
        const bool is_known = before != known_.end() && before->second.process.id == id &&
                              before->second.start_code == stat->start_code &&
                              before->second.start_stack == stat->start_stack &&
                              before->second.process.comm == stat->comm;
        if (is_known) known = before->second;
        known.start_code = stat->start_code;
        known.start_stack = stat->start_stack;
        known.process.id = id;
        known.process.parent = stat->parent;
        known.process.comm = stat->comm;
        known.process.is_kernel_thread = (stat->flags & kKernelThread) != 0;
        known.process.rss = pages_to_bytes(stat->rss_pages);
        known.process.cpu_time = ticks_to_time(stat->user_ticks + stat->system_ticks);
        const unsigned pass = known.passes++;
        const bool is_due = pass < kYoungPasses || (pass + static_cast<unsigned>(pid)) % kRefreshPasses == 0;
        if (known.process.is_kernel_thread || !is_due) return known;
        read_identity(known);
        // Those files may be of the next process with this pid, or of its next program.
        auto after = read_stat(files_, pid);
        if (after && after->start_time == stat->start_time && after->start_code == stat->start_code &&
            after->start_stack == stat->start_stack)
            return known;
        stat = std::move(after);
    }
    return std::nullopt;
}

void ProcessTable::read_identity(Known& known) const {
    Process& process = known.process;
    const auto text = [&](const char* name) {
        return files_.read(fmt::format("proc/{}/{}", process.id.pid, name)).value_or("");
    };
    if (known.passes == 1)
        process.exe = without_deleted(
            files_.read_link(fmt::format("proc/{}/exe", process.id.pid)).value_or(std::string()));
    read_status(text("status"), process);
    process.command = command_line(text("cmdline"));
    CgroupMembership membership = parse_cgroup(text("cgroup"));
    process.cgroup = std::move(membership.path);
    process.unit = std::move(membership.unit);
}

}  // namespace memtide::agent

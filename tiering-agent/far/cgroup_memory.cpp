#include "tiering-agent/far/cgroup_memory.h"

#include <algorithm>

#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

constexpr std::string_view kRefaults = "workingset_refault_anon";

// The folder of a cgroup below the root of cgroup v2; empty when it is the root, or not to be seen from here.
std::string folder_of(const Files& files, const std::string& cgroup) {
    if (cgroup.size() < 2 || cgroup.front() != '/' || cgroup.find("/..") != std::string::npos) return {};
    std::string folder = "sys/fs/cgroup" + cgroup;
    return files.exists(folder + "/memory.stat") ? folder : std::string();
}

std::optional<Bytes> swap_left(const Files& files, std::string folder) {
    std::optional<Bytes> left;
    while (folder.size() > std::string_view("sys/fs/cgroup").size()) {
        // "max" is no number.
        const auto most = files.read_number(folder + "/memory.swap.max");
        const auto used = files.read_number(folder + "/memory.swap.current");
        if (most && used) {
            const Bytes here{*most - std::min(*most, *used)};
            left = std::min(left.value_or(here), here);
        }
        folder.resize(folder.rfind('/'));
    }
    return left;
}

}  // namespace

std::optional<std::chrono::microseconds> parse_stalled(std::string_view pressure) {
    while (!pressure.empty()) {
        std::string_view line = take_line(pressure);
        if (take_word(line) != "some") continue;
        for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
            constexpr std::string_view kTotal = "total=";
            if (!word.starts_with(kTotal)) continue;
            const auto total = whole_number<std::uint64_t>(word.substr(kTotal.size()));
            if (total) return std::chrono::microseconds(*total);
        }
    }
    return std::nullopt;
}

std::optional<std::uint64_t> parse_counter(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        std::string_view line = take_line(text);
        if (take_word(line) == name) return whole_number<std::uint64_t>(take_word(line));
    }
    return std::nullopt;
}

std::optional<std::chrono::microseconds> read_stalled(const Files& files, const std::string& cgroup) {
    const std::string folder = folder_of(files, cgroup);
    if (!folder.empty())
        if (const auto stalled = parse_stalled(files.read(folder + "/memory.pressure").value_or("")))
            return stalled;
    return parse_stalled(files.read("proc/pressure/memory").value_or(""));
}

CgroupMemory read_cgroup_memory(const Files& files, const std::string& cgroup) {
    const std::string folder = folder_of(files, cgroup);
    const auto text = [&](const std::string& path) { return files.read(path).value_or(""); };
    CgroupMemory memory{.stalled = read_stalled(files, cgroup)};
    if (!folder.empty()) {
        memory.refaults = parse_counter(text(folder + "/memory.stat"), kRefaults);
        memory.swap_left = swap_left(files, folder);
    }
    if (!memory.refaults) memory.refaults = parse_counter(text("proc/vmstat"), kRefaults);
    return memory;
}

}  // namespace memtide::agent

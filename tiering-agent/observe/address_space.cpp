#include "tiering-agent/observe/address_space.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tiering-agent/observe/mapping_kind.h"
#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

std::optional<VirtualRange> parse_range(std::string_view text) {
    const auto dash = text.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const auto begin = whole_number<std::uint64_t>(text.substr(0, dash), 16);
    const auto end = whole_number<std::uint64_t>(text.substr(dash + 1), 16);
    if (!begin || !end || *begin >= *end) return std::nullopt;
    return VirtualRange{*begin, *end};
}

// "r-xp"; 's' for shared, 'p' for private.
bool is_permissions(std::string_view text) {
    return text.size() == 4 && (text[0] == 'r' || text[0] == '-') && (text[1] == 'w' || text[1] == '-') &&
           (text[2] == 'x' || text[2] == '-') && (text[3] == 'p' || text[3] == 's');
}

Vma* beginning_at(std::vector<Vma>& vmas, std::uint64_t address) {
    const auto found =
        std::ranges::lower_bound(vmas, address, {}, [](const Vma& vma) { return vma.range.begin; });
    return found != vmas.end() && found->range.begin == address ? &*found : nullptr;
}

Result<> read_lines(const Files& files, ProcessId process, std::string_view name,
                    const std::function<void(std::string_view)>& visit) {
    if (auto read = files.for_each_line(fmt::format("proc/{}/{}", process.pid, name), visit); !read)
        return std::unexpected(std::move(read.error()));
    // What was read may be of another process that has the pid now.
    return check_same(files, process);
}

}  // namespace

std::string_view to_string(VmaKind kind) {
    switch (kind) {
        case VmaKind::kAnonymous:
            return "anonymous";
        case VmaKind::kHeap:
            return "heap";
        case VmaKind::kStack:
            return "stack";
        case VmaKind::kFile:
            return "file";
        case VmaKind::kShared:
            return "shared";
        case VmaKind::kSpecial:
            return "special";
        case VmaKind::kDevice:
            return "device";
    }
    return "?";
}

std::optional<Vma> parse_maps_line(std::string_view line) {
    const auto range = parse_range(take_word(line));
    const std::string_view permissions = take_word(line);
    const auto offset = whole_number<std::uint64_t>(take_word(line), 16);
    const std::string_view device = take_word(line);
    const auto inode = whole_number<std::uint64_t>(take_word(line));
    if (!range || !is_permissions(permissions) || !offset || !inode) return std::nullopt;
    if (device.find(':') == std::string_view::npos) return std::nullopt;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const bool is_deleted = line.ends_with(kDeleted);
    if (is_deleted) line.remove_suffix(kDeleted.size());
    Vma vma{.range = *range,
            .name = std::string(line),
            .readable = permissions[0] == 'r',
            .writable = permissions[1] == 'w',
            .executable = permissions[2] == 'x',
            .is_private = permissions[3] == 'p',
            .offset = *offset,
            .inode = *inode};
    vma.kind = kind_of_mapping(vma.name, vma.is_private, is_deleted);
    // A file system can do without names of its files.
    if (vma.name.empty() && vma.inode != 0) vma.kind = VmaKind::kFile;
    return vma;
}

void append_vma(std::vector<Vma>& vmas, std::string_view maps_line) {
    auto vma = parse_maps_line(maps_line);
    if (!vma || (!vmas.empty() && vma->range.begin < vmas.back().range.end)) return;
    vmas.push_back(*std::move(vma));
}

std::vector<Vma> parse_maps(std::string_view text) {
    std::vector<Vma> vmas;
    while (!text.empty()) append_vma(vmas, take_line(text));
    return vmas;
}

// Documentation/filesystems/proc.rst, "VmFlags".
VmaFlags parse_vm_flags(std::string_view text) {
    VmaFlags flags;
    for (auto flag = take_word(text); !flag.empty(); flag = take_word(text)) {
        if (flag == "lo") flags.locked = true;
        if (flag == "ht") flags.hugetlb = true;
        if (flag == "io" || flag == "pf" || flag == "mm") flags.device_memory = true;
    }
    return flags;
}

void SmapsReader::line(std::string_view line) {
    std::string_view rest = line;
    const std::string_view first = take_word(rest);
    if (first == "VmFlags:") {
        if (current_ != nullptr) current_->flags = parse_vm_flags(rest);
        current_ = nullptr;
        return;
    }
    if (first.ends_with(':')) return;  // "Rss:                   8 kB"
    const auto range = parse_range(first);
    if (!range) return;
    Vma* const vma = beginning_at(vmas_, range->begin);
    current_ = vma != nullptr && vma->range == *range ? vma : nullptr;
}

void apply_numa_maps_line(std::string_view line, std::vector<Vma>& vmas) {
    const auto begin = whole_number<std::uint64_t>(take_word(line), 16);
    std::string policy(take_word(line));
    // "prefer (many):0-1" and "weighted interleave:0-1" are two words.
    if (policy == "prefer" || policy == "weighted") policy += fmt::format(" {}", take_word(line));
    if (!begin || policy.empty()) return;
    if (Vma* const vma = beginning_at(vmas, *begin)) vma->policy = std::move(policy);
}

std::optional<SpecialSizes> parse_special_sizes(std::string_view status) {
    std::optional<std::uint64_t> locked;
    std::optional<std::uint64_t> hugetlb;
    while (!status.empty()) {
        std::string_view line = take_line(status);
        const std::string_view key = take_word(line);
        if (key == "VmLck:") locked = whole_number<std::uint64_t>(take_word(line));
        if (key == "HugetlbPages:") hugetlb = whole_number<std::uint64_t>(take_word(line));
    }
    constexpr std::uint64_t kMost = 1ULL << 50;
    if (!locked || !hugetlb) return std::nullopt;
    return SpecialSizes{.locked = {std::min(*locked, kMost) * 1024},
                        .hugetlb = {std::min(*hugetlb, kMost) * 1024}};
}

Result<std::vector<Vma>> read_address_space(const Files& files, ProcessId process) {
    std::vector<Vma> vmas;
    const auto read =
        read_lines(files, process, "maps", [&vmas](std::string_view line) { append_vma(vmas, line); });
    if (!read) return std::unexpected(read.error());
    return vmas;
}

Result<> look_at_flags(const Files& files, ProcessId process, std::vector<Vma>& vmas) {
    const auto status = files.read(fmt::format("proc/{}/status", process.pid));
    if (!status) return std::unexpected(status.error());
    if (parse_special_sizes(*status) == SpecialSizes{}) {
        if (auto same = check_same(files, process); !same) return same;
        for (Vma& vma : vmas) vma.flags = VmaFlags{.hugetlb = is_hugetlb_name(vma.name)};
        return {};
    }
    for (Vma& vma : vmas) vma.flags.reset();
    SmapsReader reader(vmas);
    return read_lines(files, process, "smaps", [&reader](std::string_view line) { reader.line(line); });
}

Result<> look_at_policies(const Files& files, ProcessId process, std::vector<Vma>& vmas) {
    for (Vma& vma : vmas) vma.policy.reset();
    return read_lines(files, process, "numa_maps",
                      [&vmas](std::string_view line) { apply_numa_maps_line(line, vmas); });
}

}  // namespace memtide::agent

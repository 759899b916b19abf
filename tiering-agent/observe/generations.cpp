#include "tiering-agent/observe/generations.h"

#include <fmt/format.h>

#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

constexpr const char* kList = "sys/kernel/debug/lru_gen";

// "      27     140280       1024        512": number, age in ms, pages; a page count may have a mark behind
// it.
bool read_generation(std::string_view line, NodeGenerations& node) {
    const auto number = whole_number<std::uint64_t>(take_word(line));
    const auto age = whole_number<std::uint64_t>(take_word(line));
    const auto pages = [&line] {
        std::string_view word = take_word(line);
        while (!word.empty() && (word.back() < '0' || word.back() > '9')) word.remove_suffix(1);
        return whole_number<std::uint64_t>(word);
    };
    const auto anonymous = pages();
    const auto file = pages();
    constexpr std::uint64_t kMostMilliseconds = std::uint64_t{1} << 62;
    if (!number || !age || *age > kMostMilliseconds || !anonymous || !file) return false;
    node.newest = *number;
    node.generations.push_back({.age = std::chrono::milliseconds(static_cast<std::int64_t>(*age)),
                                .anonymous_pages = *anonymous,
                                .file_pages = *file});
    return true;
}

}  // namespace

std::vector<CgroupGenerations> parse_generations(std::string_view text) {
    std::vector<CgroupGenerations> cgroups;
    while (!text.empty()) {
        const std::string_view whole = take_line(text);
        std::string_view line = whole;
        const std::string_view first = take_word(line);
        if (first == "memcg") {
            const auto id = whole_number<unsigned>(take_word(line));
            line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
            if (id) cgroups.push_back({.cgroup = line.empty() ? "/" : std::string(line), .id = *id});
        } else if (cgroups.empty()) {
            continue;
        } else if (first == "node") {
            if (const auto node = whole_number<int>(take_word(line)))
                cgroups.back().nodes.push_back({.node = *node});
        } else if (!cgroups.back().nodes.empty()) {
            read_generation(whole, cgroups.back().nodes.back());
        }
    }
    return cgroups;
}

Result<std::vector<CgroupGenerations>> read_generations(const Files& files,
                                                        const std::set<std::string>& cgroups) {
    const auto text = files.read(kList);
    if (!text)
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("the kernel tells no generations of pages: {} (CONFIG_LRU_GEN; debugfs has to be "
                        "mounted)",
                        text.error().message));
    auto all = parse_generations(*text);
    if (all.empty())
        return fail(ErrorCode::kUnavailable,
                    "the kernel keeps no generations of pages: echo y > /sys/kernel/mm/lru_gen/enabled");
    std::erase_if(all, [&](const CgroupGenerations& one) { return !cgroups.contains(one.cgroup); });
    return all;
}

Result<> begin_generations(Files& files, const std::vector<CgroupGenerations>& of) {
    for (const CgroupGenerations& cgroup : of)
        for (const NodeGenerations& node : cgroup.nodes) {
            if (node.generations.empty()) continue;
            // "+ memcg_id node_id max_gen_nr"
            if (auto begun = files.write(kList, fmt::format("+ {} {} {}", cgroup.id, node.node, node.newest));
                !begun)
                return std::unexpected(std::move(begun.error()).with_context(cgroup.cgroup));
        }
    return {};
}

}  // namespace memtide::agent

#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"

// The kernel's own view of what is cold: the generations of its multi-generational LRU, for each cgroup and
// node (Documentation/admin-guide/mm/multigen_lru.rst, "Working set estimation"). Costs nothing to read,
// knows file pages, too, and has no addresses.
namespace memtide::agent {

struct Generation {
    std::chrono::milliseconds
        age{};  // since it began: its pages were not seen accessed after the next one did
    std::uint64_t anonymous_pages = 0;
    std::uint64_t file_pages = 0;

    friend bool operator==(const Generation&, const Generation&) = default;
};

struct NodeGenerations {
    int node = 0;
    std::uint64_t newest = 0;               // number of the last one
    std::vector<Generation> generations{};  // oldest first

    friend bool operator==(const NodeGenerations&, const NodeGenerations&) = default;
};

struct CgroupGenerations {
    std::string cgroup{};  // path, "/system.slice/redis.service"; "/" is the root
    unsigned id = 0;       // that the kernel gives it
    std::vector<NodeGenerations> nodes{};

    friend bool operator==(const CgroupGenerations&, const CgroupGenerations&) = default;
};

// Of the text of lru_gen in debugfs; lines that are not understood are left out. Pure.
std::vector<CgroupGenerations> parse_generations(std::string_view text);

// Of these cgroups, as far as the kernel has any. kUnavailable where it has none (CONFIG_LRU_GEN,
// /sys/kernel/mm/lru_gen/enabled), or debugfs is not mounted. Needs root. Thread safe.
Result<std::vector<CgroupGenerations>> read_generations(const Files& files,
                                                        const std::set<std::string>& cgroups);

// A new generation begins for each of them: the kernel looks at all accessed bits once (some 10 ms of a
// processor for each GiB of small pages) and takes up into it what was accessed. Others who look at accessed
// bits (DAMON, reclaim) see less for a moment. Errors as of Files::write().
Result<> begin_generations(Files& files, const std::vector<CgroupGenerations>& of);

}  // namespace memtide::agent

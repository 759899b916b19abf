#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/sysfs/files.h"

namespace memtide::agent {

// What the kernel says of the memory of one cgroup (Documentation/admin-guide/cgroup-v2.rst), or of the whole
// machine. Counters since some time; what is missing the kernel does not tell.
struct CgroupMemory {
    std::optional<std::chrono::microseconds> stalled{};  // that any process waited for memory: PSI, `some`
    std::optional<std::uint64_t> refaults{};             // pages that came back from swap
    std::optional<Bytes> swap_left{};                    // of memory.swap.max, its own and of those above it

    friend bool operator==(const CgroupMemory&, const CgroupMemory&) = default;
};

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=18398" (Documentation/accounting/psi.rst). Pure.
std::optional<std::chrono::microseconds> parse_stalled(std::string_view pressure);
// The number behind a name in memory.stat or vmstat. Pure.
std::optional<std::uint64_t> parse_counter(std::string_view text, std::string_view name);

// Only `stalled` of the next: one or two small files. Thread safe.
std::optional<std::chrono::microseconds> read_stalled(const Files& files, const std::string& cgroup);
// `cgroup`: a path such as "/batch.slice"; the machine as a whole where it is the root, unknown, or of cgroup
// v1. Some five small files. Thread safe.
CgroupMemory read_cgroup_memory(const Files& files, const std::string& cgroup);

}  // namespace memtide::agent

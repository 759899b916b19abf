#pragma once

#include <cstddef>
#include <cstdint>

// How a process lets the agent see which pages it touches: it opens a userfaultfd(2) for its memory, in which
// pages can be protected from reads and writes (Linux 7.3), and tells its number in a shared mapping of a
// memfd of this name. The agent finds that in /proc/PID/maps, reads it through /proc/PID/mem and takes a copy
// of the descriptor with pidfd_getfd(2). It needs no connection, no privilege, and no agent that runs
// already, and it outlives any agent. Whoever reads it trusts nothing in it. fork(2) does not copy it,
// execve(2) ends it.
namespace memtide::consent_table {

inline constexpr char kMemfdName[] = "memtide-consent";
inline constexpr char kMappingName[] = "/memfd:memtide-consent";  // in maps, without " (deleted)"

struct Table {
    char magic[16] = {};
    std::int32_t descriptor = -1;
    std::uint32_t zero = 0;
};
static_assert(sizeof(Table) == 24);

inline constexpr char kMagic[16] = "memtide-consent";

// Of the mapping: pages that only this table is in, so that protecting them disturbs nobody.
inline constexpr std::size_t kSize = 4096;

}  // namespace memtide::consent_table

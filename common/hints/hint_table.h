#pragma once

#include <cstddef>
#include <cstdint>

// Where a process keeps its hints for the agent to read: a private mapping of a memfd of this name, found in
// /proc/PID/maps and read through /proc/PID/mem. It needs no connection and no privilege, outlives any agent,
// is copied by fork(2) and gone after execve(2), like the memory that it speaks of. All numbers are the
// machine's own. Whoever reads it trusts nothing in it.
namespace memtide::hint_table {

inline constexpr char kMemfdName[] = "memtide-hints";
inline constexpr char kMappingName[] = "/memfd:memtide-hints";  // in maps, without " (deleted)"

struct Header {
    char magic[16] = {};
    std::uint32_t sequence = 0;  // odd while it is being written; another one after each change
    std::uint32_t entries = 0;
    std::uint64_t zero = 0;
};
static_assert(sizeof(Header) == 32);

inline constexpr char kMagic[16] = "memtide-hints-1";

// Ascending, without overlaps. Addresses are multiples of 4096.
struct Entry {
    std::uint64_t begin_and_hint = 0;  // address | number of the hint (hint_ranges.h)
    std::uint64_t end = 0;             // address
};
static_assert(sizeof(Entry) == 16);

inline constexpr std::size_t kMostEntries = 65'534;
inline constexpr std::size_t kSize = sizeof(Header) + kMostEntries * sizeof(Entry);  // 1 MiB
static_assert(kSize == 1 << 20);

}  // namespace memtide::hint_table

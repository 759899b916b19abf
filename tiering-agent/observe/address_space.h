#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/processes.h"

// The mappings of a process, from /proc/PID/{maps,status,smaps,numa_maps} (proc(5)).
namespace memtide::agent {

// Virtual addresses of one process, in bytes, [begin, end).
struct VirtualRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    [[nodiscard]] Bytes size() const { return {end - begin}; }
    [[nodiscard]] bool overlaps(VirtualRange other) const { return begin < other.end && other.begin < end; }
    friend auto operator<=>(VirtualRange, VirtualRange) = default;
};

enum class VmaKind {
    kAnonymous,
    kHeap,   // [heap]: below the program break
    kStack,  // [stack]: of the first thread; those of others are anonymous
    kFile,
    kShared,   // tmpfs without a place of its own, System V, memfd, MAP_SHARED|MAP_ANONYMOUS
    kSpecial,  // [vdso], [vvar], [vsyscall], rings of io_uring and AIO: the kernel's own
    kDevice,
};
std::string_view to_string(
    VmaKind kind);  // "anonymous", "heap", "stack", "file", "shared", "special", "device"

// What /proc/PID/maps does not show; look_at_flags() finds out.
struct VmaFlags {
    bool locked = false;   // mlock(2), mlockall(2)
    bool hugetlb = false;  // pages of hugetlbfs
    // I/O, or page frames that are no ordinary memory (io, pf, mm). Found only where smaps is read; else the
    // name of the mapping has to tell.
    bool device_memory = false;

    friend bool operator==(const VmaFlags&, const VmaFlags&) = default;
};

struct Vma {
    VirtualRange range{};
    VmaKind kind = VmaKind::kAnonymous;
    std::string name{};  // as maps has it, without " (deleted)": a path, "[heap]", "[anon:NAME]", or empty
    bool readable = false;
    bool writable = false;
    bool executable = false;
    bool is_private = false;  // copy on write
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::optional<VmaFlags> flags{};      // none: not looked at
    std::optional<std::string> policy{};  // "default", "bind:1", ...: its own, or else of its process

    friend bool operator==(const Vma&, const Vma&) = default;
};

// --- Pure: whatever the texts hold ---

// One line of maps; nothing when it is none, or its range is empty.
std::optional<Vma> parse_maps_line(std::string_view line);
// All of maps: ascending and without overlaps; lines that are not are left out.
std::vector<Vma> parse_maps(std::string_view text);
// Adds a mapping behind those that are there, unless it overlaps or precedes them.
void append_vma(std::vector<Vma>& vmas, std::string_view maps_line);

// "VmFlags: rd wr mr mw me ac sd": what comes behind the colon.
VmaFlags parse_vm_flags(std::string_view text);

// Takes the lines of smaps one by one and puts the flags into those of `vmas` that have the same range.
class SmapsReader {
  public:
    explicit SmapsReader(std::vector<Vma>& vmas) : vmas_(vmas) {}
    void line(std::string_view line);

  private:
    std::vector<Vma>& vmas_;
    Vma* current_ = nullptr;
};
// One line of numa_maps: puts the memory policy into that of `vmas`, ascending, that begins there.
void apply_numa_maps_line(std::string_view line, std::vector<Vma>& vmas);

// From status: whether any mapping can be locked, or hold pages of hugetlbfs.
struct SpecialSizes {
    Bytes locked{};
    Bytes hugetlb{};

    friend bool operator==(const SpecialSizes&, const SpecialSizes&) = default;
};
// Nothing when one of the lines VmLck and HugetlbPages is missing.
std::optional<SpecialSizes> parse_special_sizes(std::string_view status);

// --- Reading. kNotFound when the process is gone, or its pid is another one's now. Thread safe. ---

// Flags and policies are not looked at. About 1 ms for 10,000 mappings.
Result<std::vector<Vma>> read_address_space(const Files& files, ProcessId process);

// Fills `flags` anew. Where status says that nothing is locked and nothing is hugetlbfs, it takes one small
// file; else smaps, for which the kernel walks the page tables: some 15 ms a GiB of 4 KiB pages. Mappings
// that have changed meanwhile stay without.
Result<> look_at_flags(const Files& files, ProcessId process, std::vector<Vma>& vmas);

// Fills `policy` anew. numa_maps walks the page tables, too, and there is no cheaper way: call it seldom.
Result<> look_at_policies(const Files& files, ProcessId process, std::vector<Vma>& vmas);

}  // namespace memtide::agent

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"

namespace memtide::agent {

// One word of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
struct PageMapEntry {
    std::uint64_t bits = 0;

    [[nodiscard]] bool is_present() const { return (bits >> 63 & 1) != 0; }
    [[nodiscard]] bool is_soft_dirty() const { return (bits >> 55 & 1) != 0; }
    // From reads and writes, by userfaultfd(2), since it was touched last; only where it covers the mapping.
    [[nodiscard]] bool is_protected() const { return (bits >> 57 & 1) != 0; }
    [[nodiscard]] std::uint64_t frame() const { return bits & ((std::uint64_t{1} << 55) - 1); }  // 0: hidden
};

// Page numbers, [begin, end).
struct PageRun {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool huge = false;
    friend bool operator==(const PageRun&, const PageRun&) = default;
};

// The pages of one process. Errors: kNotFound when it is gone, kPermission.
class PageMap {
  public:
    static Result<PageMap> open(const Files& files, int pid);
    ~PageMap();
    PageMap(PageMap&& other) noexcept;
    PageMap& operator=(PageMap&&) = delete;

    // What is populated in a range, without the zero page; from Linux 6.7 on with PAGEMAP_SCAN, which knows
    // huge pages and passes over holes, before that the whole range.
    Result<std::vector<PageRun>> populated(VirtualRange range);
    // The words of so many pages from `page` on; fewer at the end of the address space.
    Result<std::span<const PageMapEntry>> read(std::uint64_t page, std::size_t count);

  private:
    explicit PageMap(int file) : file_(file) {}
    int file_;
    bool can_scan_ = true;
    std::vector<PageMapEntry> words_;
};

// Which NUMA node a page frame is of, by the memory blocks of /sys/devices/system/memory.
class FrameNodes {
  public:
    // kUnavailable on a kernel without memory blocks.
    static Result<FrameNodes> read(const Files& files);
    [[nodiscard]] int node_of(std::uint64_t frame) const;  // -1: of none

  private:
    unsigned block_shift_ = 0;         // of frame numbers
    std::vector<std::int16_t> nodes_;  // by block
};

}  // namespace memtide::agent

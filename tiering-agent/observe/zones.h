#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "common/base/error.h"
#include "common/sysfs/files.h"

namespace memtide::agent {

// By NUMA node: pages that movable memory of processes can still have there. What is below a zone's high
// watermark, or reserved in it for lower kinds of memory, cannot be had without reclaim
// (Documentation/admin-guide/sysctl/vm.rst: watermark_scale_factor, lowmem_reserve_ratio).
using UsablePages = std::map<int, std::uint64_t>;

// Of the text of /proc/zoneinfo; what is not understood counts for nothing. Pure.
UsablePages parse_zones(std::string_view zoneinfo);
// Errors as Files::read(). Thread safe.
Result<UsablePages> read_usable_pages(const Files& files);

}  // namespace memtide::agent

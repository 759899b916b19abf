#pragma once

#include <cstdint>
#include <memory>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/processes.h"

namespace memtide::agent {

// Makes 512 pages of a huge one, and one of 512. `page` is the number of the first. kNotFound: the process is
// gone; kPermission, kUnavailable: it cannot be done for any page here; kConflict: the kernel kept this one
// as it is, and why. Not thread safe.
class PageShaper {
  public:
    virtual ~PageShaper() = default;
    virtual Result<> split(ProcessId process, std::uint64_t page) = 0;
    virtual Result<> join(ProcessId process, std::uint64_t page) = 0;
};

// By process_madvise(2): the kernel splits a huge page of which a part is said to be cold (MADV_COLD), and
// joins what is to be (MADV_COLLAPSE, Linux 6.1) on the node that has most of it. What is locked stays, as
// does what more than one process maps. The content stays in any case.
std::unique_ptr<PageShaper> make_page_shaper(const Files& files);

}  // namespace memtide::agent

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/hotplug/state.h"

namespace memtide::agent {

// What is on the CXL bus; `dax` and `blocks` of the regions are left empty.
struct CxlView {
    std::vector<Memdev> memdevs{};
    std::vector<Region> regions{};
};

// Enumeration of the CXL bus and creation of empty regions. Not thread safe.
class CxlBus {
  public:
    virtual ~CxlBus() = default;
    // kUnavailable when libcxl cannot start.
    virtual Result<CxlView> enumerate() = 0;
    // The name that the next region will get.
    virtual Result<std::string> next_region(const std::string& window) = 0;
    // Makes the empty ram region `name`, which next_region() gave. kConflict when somebody was faster.
    virtual Result<> create_ram_region(const std::string& window, const std::string& name) = 0;
};

// The real one, on libcxl. `files` must outlive it and have the root "/": libcxl knows no other.
std::unique_ptr<CxlBus> make_libcxl_bus(Files& files);

}  // namespace memtide::agent

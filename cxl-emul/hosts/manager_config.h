#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// The configuration of a fabric manager that fits these switches and hosts (every `listen` with its real
// port): it listens where the hosts' agents look for it, `manager` being "http://ADDRESS:PORT" or
// "unix:/PATH", and keeps its journal at `state`. kInvalidArgument when `manager` is neither.
Result<std::string> manager_config(const Topology& topology, std::string_view manager,
                                   std::string_view state);

}  // namespace memtide::emul

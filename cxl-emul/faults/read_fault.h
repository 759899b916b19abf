#pragma once

#include <string>
#include <string_view>

#include "common/config/yaml.h"
#include "cxl-emul/faults/fault.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// Reads a fault out of the map {fault: KIND, ...}; mistakes are recorded in its document, where each stands.
// With a topology it also has to be one that can happen there.
Fault read_fault(const YamlMap& map, const Topology* topology);

// A text that is such a map: YAML, or JSON. kInvalidArgument with "NAME:LINE:COLUMN: what is wrong" for each
// mistake.
Result<Fault> parse_fault(std::string_view text, std::string name, const Topology* topology);

}  // namespace memtide::emul

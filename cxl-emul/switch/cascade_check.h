#pragma once

#include "common/config/yaml.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// Rejects ports whose switch is not there, has no such upstream port, is cabled twice or reaches itself, and
// those whose upper switch the host does not reach.
void check_cascades(const YamlMap& root, const Topology& topology);

}  // namespace memtide::emul

#pragma once

#include "common/config/yaml.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// What no single value can tell: things that name each other, sums, duplicates. `root` is the document that
// `topology` was read from without a mistake; complaints are recorded there, where the culprit stands.
void check_topology(const YamlMap& root, const Topology& topology);

}  // namespace memtide::emul

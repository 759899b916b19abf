#pragma once

#include "common/diagram/fabric.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// What there is to be drawn of a topology, as it is at power-on: nothing is bound, LDs have what the file
// says. LDs at heads that are in hosts are theirs.
diagram::Fabric picture_of(const Topology& topology);

}  // namespace memtide::emul

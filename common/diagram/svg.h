#pragma once

#include <string>

#include "common/diagram/fabric.h"

namespace memtide::diagram {

// The fabric as an SVG 1.1 document that needs nothing else: hosts at the top, switches with ports and vPPBs,
// devices with their LDs; every host has a colour, and what is bound to it has that too. Names and notes
// cannot break out of the document.
std::string to_svg(const Fabric& fabric);

}  // namespace memtide::diagram

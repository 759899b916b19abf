#pragma once

#include <string>

#include "cxl-emul/faults/fault.h"

namespace memtide::emul {

// The fault as one line that parse_fault() reads: "{fault: link-down, port: 3, for: 5000ms}".
std::string to_string(const Fault& fault);

}  // namespace memtide::emul

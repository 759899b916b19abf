#pragma once

#include "common/fmapi/message.h"
#include "cxl-emul/faults/fault.h"
#include "cxl-emul/faults/tunnel_levels.h"

namespace memtide::emul {

// Changes an answer of the device to what a fault of kind lying-device wants it to say; true when it changed
// any. `level` is the request that it answers.
bool tell_lie(const Fault& fault, const TunnelLevel& level, fmapi::Message& answer);

}  // namespace memtide::emul

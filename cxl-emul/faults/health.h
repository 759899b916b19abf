#pragma once

#include <span>

#include "common/fmapi/commands.h"
#include "cxl-emul/faults/fault.h"

namespace memtide::emul {

// What a device says of its health (Get Health Info) while it has these faults.
fmapi::GetHealthInfoResponse health_with(std::span<const FaultKind> faults);

}  // namespace memtide::emul

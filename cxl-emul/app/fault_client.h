#pragma once

#include <string>

#include "common/base/error.h"

namespace memtide::emul {

// One call of the control interface (cxl-emul/faults/control.h) at "127.0.0.1:PORT" or "unix:/PATH"; the body
// of the answer. Blocks. Errors as http::Client's, and what the other end says of a call that it refused.
Result<std::string> call_control(const std::string& control, const std::string& method,
                                 const std::string& target, std::string body = {});

}  // namespace memtide::emul

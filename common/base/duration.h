#pragma once

#include <chrono>
#include <string_view>

#include "common/base/error.h"

namespace memtide {

// Reads "250ms", "60s", "5min", "2h", "7d", and a bare number as seconds. kInvalidArgument otherwise, and
// beyond 100 years.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace memtide

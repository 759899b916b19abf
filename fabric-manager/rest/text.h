#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

// RFC 3339 in UTC with milliseconds: "2026-11-29T17:03:21.042Z".
std::string format_time(Time time);

// Reads "250ms", "60s", "5min", "2h", "7d", and a bare number as seconds. kInvalidArgument otherwise, and
// beyond 100 years.
Result<Milliseconds> parse_duration(std::string_view text);

}  // namespace memtide::fm

#pragma once

#include <string>

#include "common/base/duration.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

// RFC 3339 in UTC with milliseconds: "2026-11-29T17:03:21.042Z".
std::string format_time(Time time);

}  // namespace memtide::fm

#pragma once

#include <string>

#include "tiering-agent/hotplug/state.h"

namespace memtide::agent {

// What --once prints: every memdev, region, dax device and memory block of CXL memory on this host.
std::string seen_as_text(const Seen& seen);
std::string seen_as_json(const Seen& seen);

}  // namespace memtide::agent

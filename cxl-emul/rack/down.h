#pragma once

#include <string>
#include <vector>

#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// `rack down`: stops the rack of a run folder, if there is one, and says what stays of it: the media files,
// which `wipe` removes. Gives the exit code.
int run_down(const std::string& run_folder, const std::string& topology_path, bool wipe);

// Waits until the supervisor of a run folder has ended; false when it has not for 30 s.
bool wait_until_released(const std::string& run_folder);

// The media files that a topology names.
std::vector<std::string> media_files(const Topology& topology);

}  // namespace memtide::emul

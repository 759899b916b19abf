#pragma once

#include <string>
#include <vector>

#include "common/sysfs/files.h"

namespace memtide::agent {

// What else on this machine moves pages between nodes, a sentence each with what to do about it: two movers
// undo each other's work. Empty when there is nothing.
std::vector<std::string> find_rivals(const Files& files);

}  // namespace memtide::agent

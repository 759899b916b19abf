#pragma once

#include <map>
#include <random>
#include <string>

#include "tests/chaos/world.h"

namespace memtide::test {

// Does one thing after the other to the world until the time is over. What is drawn depends on the seed
// alone; when it happens, and so what comes of it, does not. Returns how often each action was taken.
std::map<std::string, int> run_chaos(World& world);

}  // namespace memtide::test

#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tests/crash/life.h"

namespace memtide::fm::crash {

// What a power failure may do to the files after the process is gone: what was never synced is cut, or
// garbled, or there. Answers whether it changed anything.
bool tear(const std::string& database, const Witness& witness, std::mt19937_64& random);

}  // namespace memtide::fm::crash

#pragma once

#include "tests/chaos/world.h"

namespace memtide::test {

// At any time: the pool and each of its devices add up to the byte.
void check_sums(World& world);

// Ends every fault, releases everything, and waits until nothing moves any more.
void heal_and_settle(World& world);

// When nothing moves any more: what must hold, seen from the clients', the hosts' and the switches' side.
void check_end(World& world);

}  // namespace memtide::test

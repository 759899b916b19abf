#pragma once

#include "tests/chaos/world.h"

namespace memtide::test {

// At any time: the pool and each of its devices add up to the byte.
void check_sums(World& world);

// Ends every fault, releases everything, and waits until nothing moves any more.
void heal_and_settle(World& world);

// In a world that is secured and settled: a host that shows another's certificate is refused and audited, one
// whose certificate is revoked waits for its new one, and both work again afterwards.
void check_certificates(World& world);

// When nothing moves any more: what must hold, seen from the clients', the hosts' and the switches' side.
void check_end(World& world);

}  // namespace memtide::test

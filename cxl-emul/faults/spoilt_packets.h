#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

// Ways to spoil the packets of an answer. Pure: the same draws give the same bytes.
namespace memtide::emul {

using FaultRandom = std::mt19937_64;
// From 0 to most - 1; 0 when most is 0. The same with every standard library, unlike its distributions.
std::uint64_t draw_below(FaultRandom& random, std::uint64_t most);
// True with that probability.
bool draw_chance(FaultRandom& random, double probability);

using WireBytes = std::vector<std::byte>;

// Flips one bit or more in `count` bytes; every one of them changes.
void corrupt(WireBytes& bytes, std::size_t count, FaultRandom& random);
// Leaves the first `count` bytes, or fewer than there are when it is 0 or too many; never nothing.
void truncate(WireBytes& bytes, std::size_t count, FaultRandom& random);
// Another order of the packets; false when there is one only.
bool reorder_packets(WireBytes& bytes, FaultRandom& random);
// A packet comes twice.
void duplicate_packet(WireBytes& bytes, FaultRandom& random);

}  // namespace memtide::emul

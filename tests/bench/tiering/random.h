#pragma once

#include <cstddef>
#include <cstdint>

namespace memtide::bench {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // Below `limit`, of 32 random bits.
    static std::size_t scale(std::uint32_t bits, std::size_t limit) {
        return static_cast<std::size_t>((std::uint64_t{bits} * limit) >> 32);
    }

  private:
    std::uint64_t state_;
};

}  // namespace memtide::bench

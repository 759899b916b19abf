#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtide::bench {

// Draws numbers by given shares in constant time (Walker: "An efficient method for generating discrete random
// variables with general distributions", 1977), from 64 random bits, of which each half is 32-bit exact.
class AliasTable {
  public:
    AliasTable() = default;
    // Of shares that sum up to 1; at most 2^32 of them.
    explicit AliasTable(const std::vector<double>& shares);

    [[nodiscard]] std::size_t pick(std::uint64_t bits) const {
        const std::size_t slot = static_cast<std::size_t>(((bits >> 32) * slots_.size()) >> 32);
        return static_cast<std::uint32_t>(bits) < slots_[slot].threshold ? slot : slots_[slot].other;
    }
    [[nodiscard]] std::size_t size() const { return slots_.size(); }

  private:
    struct Slot {
        std::uint32_t threshold;
        std::uint32_t other;
    };
    std::vector<Slot> slots_;
};

// Share of each of `places` when `keys` keys of Zipf popularity (rank r as often as r^-exponent) are hashed
// over them: several may share a place, as in YCSB's scrambled Zipf. Another phase hashes them elsewhere.
std::vector<double> scrambled_zipf(std::size_t keys, std::size_t places, double exponent, unsigned phase);

// Sum of the `count` largest shares.
double best_of(std::vector<double> shares, std::size_t count);

}  // namespace memtide::bench

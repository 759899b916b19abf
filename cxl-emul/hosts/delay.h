#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::emul {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): eight bytes of
// state, of which every emulated host has one.
class Random {
  public:
    using result_type = std::uint64_t;
    explicit Random(std::uint64_t seed) : state_(seed) {}
    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return UINT64_MAX; }
    result_type operator()();

  private:
    std::uint64_t state_;
};

// How long something takes at an emulated host: always the same, or a draw from a distribution.
struct Delay {
    enum class Shape { kFixed, kUniform, kExponential };
    Shape shape = Shape::kFixed;
    std::chrono::microseconds low{0};   // the time itself, or the mean of an exponential one
    std::chrono::microseconds high{0};  // of kUniform, not below `low`

    // The next draw. An exponential one is at most 20 times its mean, so that no wait is endless.
    [[nodiscard]] std::chrono::microseconds draw(Random& random) const;
    friend bool operator==(const Delay&, const Delay&) = default;
};

// "250us", "20ms", "2s", "1min"; kInvalidArgument on anything else, and beyond a day.
Result<std::chrono::microseconds> parse_duration(std::string_view text);

// "20ms" (fixed), "5ms..50ms" (uniform), "exp:20ms" (exponential, by its mean); kInvalidArgument otherwise.
Result<Delay> parse_delay(std::string_view text);

}  // namespace memtide::emul

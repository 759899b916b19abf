#pragma once

#include <cstdint>

// What links of the emulated switch and its devices look like: 16 lanes at 32 GT/s. Encodings as in
// PhysicalPort.
namespace memtide::emul {

inline constexpr std::uint8_t kLanes = 16;
inline constexpr std::uint8_t kSpeedsUpTo32GTs = 0x1f;
inline constexpr std::uint8_t k32GTs = 5;
inline constexpr std::uint8_t kLtssmDetect = 0;
inline constexpr std::uint8_t kLtssmL0 = 4;

}  // namespace memtide::emul

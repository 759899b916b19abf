#pragma once

#include <cstddef>
#include <string>

namespace memtide::diagram {

// The colour of the Nth host: well apart for the first twelve, then around the colour circle. All of them
// bear white text.
std::string host_colour(std::size_t host);

inline constexpr const char* kInk = "#0f172a";
inline constexpr const char* kFaint = "#64748b";
inline constexpr const char* kLine = "#94a3b8";
inline constexpr const char* kPaper = "#ffffff";
inline constexpr const char* kSwitchFill = "#f1f5f9";
inline constexpr const char* kDeviceFill = "#f8fafc";
inline constexpr const char* kBad = "#dc2626";
inline constexpr const char* kGood = "#16a34a";

}  // namespace memtide::diagram

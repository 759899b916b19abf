#pragma once

#include <cstddef>

// Sizes of what pictures are made of, in pixels.
namespace memtide::diagram {

inline constexpr double kMargin = 36;
inline constexpr double kTitleHeight = 44;
inline constexpr double kLegendHeight = 34;
inline constexpr double kLegendRow = 20;

inline constexpr double kTitleSize = 18;  // fonts
inline constexpr double kNameSize = 14;
inline constexpr double kDetailSize = 11;
inline constexpr double kSmallSize = 9.5;

inline constexpr double kHostHeight = 52;

inline constexpr double kChipWidth = 26;  // a port, or a head
inline constexpr double kChipHeight = 18;
inline constexpr double kChipPitch = 34;
inline constexpr double kDot = 9;

inline constexpr std::size_t kMostSlots = 16;  // drawn of a VCS
inline constexpr std::size_t kSlotColumns = 8;
inline constexpr double kSlotPitch = 22;
inline constexpr double kLanePadding = 5;
inline constexpr double kLaneTitle = 17;
inline constexpr double kLaneGap = 12;
inline constexpr double kLanesTop = 20;  // below the upper edge of a switch

inline constexpr double kSwitchPadding = 14;
inline constexpr double kSwitchTitle = 50;  // at the lower edge

inline constexpr double kDeviceTitle = 50;
inline constexpr double kDevicePadding = 12;
inline constexpr double kGroupGap = 14;
inline constexpr double kCellWidth = 52;
inline constexpr double kCellHeight = 34;

}  // namespace memtide::diagram

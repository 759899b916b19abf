#include "common/diagram/palette.h"

#include <array>

#include <fmt/format.h>

namespace memtide::diagram {

std::string host_colour(std::size_t host) {
    constexpr std::array<const char*, 12> kFirst{"#2563eb", "#c2410c", "#047857", "#7c3aed",
                                                 "#be185d", "#0e7490", "#a16207", "#4338ca",
                                                 "#15803d", "#9f1239", "#475569", "#86198f"};
    if (host < kFirst.size()) return kFirst[host];
    // The golden angle keeps neighbours apart however many there are.
    const std::size_t degrees = (host * 137) % 360;
    return fmt::format("hsl({}, 62%, {}%)", degrees, host % 2 == 0 ? 36 : 44);
}

}  // namespace memtide::diagram

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memtide::fm {

enum class PlacementKind {
    kPack,       // as few devices as possible, the fullest first: keeps large holes for others
    kSpread,     // over many devices, the emptiest first: less is lost when one fails
    kBandwidth,  // equal parts on `ways` devices, interleaved into one region
};
std::string_view to_string(PlacementKind kind);  // "pack"
std::optional<PlacementKind> parse_placement_kind(std::string_view text);

// How the memory of one composition is to be chosen. Percentages are of all memory that the host has when
// the composition is there; 100 means no limit.
struct PlacementPolicy {
    PlacementKind kind = PlacementKind::kPack;
    std::uint8_t ways = 1;         // of bandwidth: 1, 2, 4 or 8
    std::uint8_t max_devices = 8;  // how many devices it may be made of
    std::uint8_t max_percent_per_device = 100;
    std::uint8_t max_percent_per_switch = 100;
    bool exclusive_devices = false;  // no device on which another tenant has memory
    bool use_reserve = false;        // may take what the operator keeps back
    bool reprovide = false;          // a part whose device fails is replaced from another
    friend bool operator==(const PlacementPolicy&, const PlacementPolicy&) = default;
};

// A composition never has more parts at a time.
inline constexpr std::uint8_t kMostParts = 8;

}  // namespace memtide::fm

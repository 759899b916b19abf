#pragma once

#include <cstdint>
#include <span>

#include "common/fmapi/mctp.h"

// The header of an MCTP packet (DSP0236, 8.1), for the two files that write and read packets.
namespace memtide::fmapi::detail {

inline constexpr std::uint8_t kMctpVersion = 1;
inline constexpr unsigned kStartOfMessage = 0x80;
inline constexpr unsigned kEndOfMessage = 0x40;
inline constexpr unsigned kSequenceShift = 4;
inline constexpr unsigned kSequenceMask = 3;
inline constexpr unsigned kTagOwner = 0x08;
inline constexpr unsigned kTagMask = 0x07;

struct PacketHeader {
    std::uint8_t version = 0;
    bool start = false;
    bool end = false;
    std::uint8_t sequence = 0;
    MctpRoute route;
};

// Of at least kPacketHeaderSize bytes.
inline PacketHeader parse_header(std::span<const std::byte> packet) {
    const auto flags = std::to_integer<unsigned>(packet[3]);
    return {.version = static_cast<std::uint8_t>(std::to_integer<unsigned>(packet[0]) & 0xf),
            .start = (flags & kStartOfMessage) != 0,
            .end = (flags & kEndOfMessage) != 0,
            .sequence = static_cast<std::uint8_t>(flags >> kSequenceShift & kSequenceMask),
            .route = {.destination = std::to_integer<std::uint8_t>(packet[1]),
                      .source = std::to_integer<std::uint8_t>(packet[2]),
                      .tag = static_cast<std::uint8_t>(flags & kTagMask),
                      .tag_owner = (flags & kTagOwner) != 0}};
}

}  // namespace memtide::fmapi::detail

#pragma once

#include "common/fmapi/message.h"

namespace memtide::fmapi {

// How messages follow each other on a byte stream.
enum class Framing {
    kFixedPackets,  // MCTP packets of 68 bytes each, the last one of a message zero padded
    kTruePackets,   // MCTP packets of their true length: only the last one of a message is shorter
    kFrames,        // no MCTP: each CCI message behind a FrameHeader
};

// What stands before each message of Framing::kFrames. The specification has no such framing; this is ours.
//   u32 length of the CCI message behind it, header included, the frame header not; little endian
inline constexpr std::size_t kFrameHeaderSize = 4;

// How two ends of a stream write and read messages.
struct WireFormat {
    Framing framing = Framing::kFixedPackets;
    bool frame_length_is_big_endian = false;  // of kFrames
    HeaderForm header = {};

    friend bool operator==(const WireFormat&, const WireFormat&) = default;
};

}  // namespace memtide::fmapi

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace memtide::fmapi {

// A packet of a capture file.
struct CapturedPacket {
    std::chrono::system_clock::time_point time;
    int link_type = 0;  // DLT_..., as libpcap has it for the file
    std::vector<std::byte> bytes;
};

inline constexpr int kLinkTypeMctp = 291;  // LINKTYPE_MCTP: packets from their MCTP header on (DSP0236)

// All packets of a pcap or pcapng file, "-" for standard input. kNotFound, kIo, kInvalidArgument (it is no
// capture, or ends in the middle of a packet) name the file.
Result<std::vector<CapturedPacket>> read_pcap(const std::string& path);

}  // namespace memtide::fmapi

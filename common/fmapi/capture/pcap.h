#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace memtide::fmapi {

// A packet of a capture file.
struct CapturedPacket {
    std::chrono::system_clock::time_point time;
    int link_type = 0;  // LINKTYPE_... of the file
    std::vector<std::byte> bytes;
};

inline constexpr int kLinkTypeMctp = 291;  // LINKTYPE_MCTP: packets from their MCTP header on (DSP0236)

// All packets of a pcap or pcapng file, "-" for standard input. kNotFound, kIo, kInvalidArgument (it is no
// capture, or ends in the middle of a packet) name the file.
Result<std::vector<CapturedPacket>> read_pcap(const std::string& path);

// Writes MCTP packets into a pcap file that Wireshark opens (its MCTP dissector is in 4.2 and later). Each
// packet is in the file when write() returns, so that a killed program leaves a whole capture. Not thread
// safe.
class PcapWriter {
  public:
    // Replaces the file. kIo and the like name it.
    static Result<PcapWriter> create(const std::string& path);

    // The MCTP packets in `stream`, a multiple of kPacketSize bytes. After an error nothing more is written.
    Result<> write(std::span<const std::byte> stream,
                   std::chrono::system_clock::time_point time = std::chrono::system_clock::now());

  private:
    struct File;
    explicit PcapWriter(std::shared_ptr<File> file) : file_(std::move(file)) {}
    std::shared_ptr<File> file_;
};

}  // namespace memtide::fmapi

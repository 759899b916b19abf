#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <span>
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

enum class Sender { kManager, kSwitch };

// Writes what goes over connections between managers and a switch into a pcap file, as TCP segments of
// made-up addresses (manager 10.0.0.1, switch 10.0.0.2 port 2650) whatever the real transport is, so that
// every Wireshark opens it. All that was written is in the file when write() returns: a killed program leaves
// a whole capture. Not thread safe.
class PcapWriter {
  public:
    static constexpr std::uint16_t kSwitchPort = 2650;

    // Replaces the file. kIo and the like name it.
    static Result<PcapWriter> create(const std::string& path);

    // Bytes that one end of a connection has sent; `connection` is any number that the caller knows it by.
    Result<> write(std::uint64_t connection, Sender sender, std::span<const std::byte> bytes,
                   std::chrono::system_clock::time_point time = std::chrono::system_clock::now());

  private:
    // What each end of a connection has sent so far.
    struct Connection {
        std::uint16_t manager_port = 0;
        std::uint32_t sent_by_manager = 0;
        std::uint32_t sent_by_switch = 0;
    };
    PcapWriter(std::string path, std::ofstream file) : path_(std::move(path)), file_(std::move(file)) {}
    void add_segment(Connection& connection, Sender sender, bool syn, std::span<const std::byte> payload,
                     std::chrono::system_clock::time_point time);

    std::string path_;
    std::ofstream file_;
    std::map<std::uint64_t, Connection> connections_;
};

}  // namespace memtide::fmapi

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace memtide::fmapi {

enum class Sender { kManager, kSwitch };

// Writes what goes over connections between managers and switches into a pcap file, as TCP segments of
// made-up addresses (managers 10.0.0.1, the first switch 10.0.0.2 port 2650, the next 10.0.0.3) whatever the
// real transport is, so that every Wireshark opens it. Each packet goes into the file with one system call,
// whole or not at all: a killed program, and one whose disk is full, leave a readable capture. Not thread
// safe.
class PcapWriter {
  public:
    static constexpr std::uint16_t kSwitchPort = 2650;
    // "10.0.0.2:2650": what stands for a switch; they are counted from 0.
    static std::string address_of_switch(std::uint32_t which_switch);

    // Writes behind what the file has; one that does not exist is made with mode 0600. A named pipe that
    // somebody reads is as good, and is never waited for. Errors name the file: kInvalidArgument when there
    // is something else in it than what this class wrote, kConflict while another writer has it open, kIo and
    // the like.
    static Result<PcapWriter> open(const std::string& path);
    ~PcapWriter();
    PcapWriter(PcapWriter&& other) noexcept;
    PcapWriter& operator=(PcapWriter&&) = delete;

    using Time = std::chrono::system_clock::time_point;

    // A connection begins; `connection` is any number that the caller knows it by, `which_switch` counts from
    // 0. Errors of this and the others: kExhausted on a full disk, kIo and the like; nothing can be written
    // after one.
    Result<> begin(std::uint64_t connection, std::uint32_t which_switch,
                   Time time = std::chrono::system_clock::now());
    // Bytes that one end has sent. A connection that has not begun does so, with the first switch.
    Result<> write(std::uint64_t connection, Sender sender, std::span<const std::byte> bytes,
                   Time time = std::chrono::system_clock::now());
    // The number may stand for another connection then.
    Result<> end(std::uint64_t connection, Time time = std::chrono::system_clock::now());

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    struct Connection {
        std::uint32_t switch_address = 0;
        std::uint16_t manager_port = 0;
        std::uint32_t sent_by_manager = 0;  // sequence numbers of what comes next
        std::uint32_t sent_by_switch = 0;
    };
    PcapWriter(std::string path, int file) : path_(std::move(path)), file_(file) {}
    Result<> take_up();
    Result<> add_segment(Connection& connection, Sender sender, unsigned flags,
                         std::span<const std::byte> payload, Time time);
    Result<> append(std::span<const std::byte> bytes);
    [[nodiscard]] Result<> check_room();

    std::string path_;
    int file_ = -1;
    bool is_file_ = false;          // not a pipe: what was written can be taken back
    std::uint64_t size_ = 0;        // of whole packets, the header included
    std::uint64_t room_known_ = 0;  // size at which the room on the disk was looked at last
    std::uint64_t begun_ = 0;       // connections so far
    std::map<std::uint64_t, Connection> connections_;
};

}  // namespace memtide::fmapi

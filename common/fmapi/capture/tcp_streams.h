#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace memtide::fmapi {

// One direction of a TCP connection; IPv4 addresses are mapped into IPv6.
struct Flow {
    std::array<std::byte, 16> source_address{};
    std::array<std::byte, 16> destination_address{};
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;

    friend auto operator<=>(const Flow&, const Flow&) = default;
};

struct Segment {
    Flow flow;
    std::uint32_t sequence = 0;
    bool starts = false;  // SYN: the first byte has the next sequence number
    std::span<const std::byte> payload;
};

// The TCP segment in a captured packet; nothing when there is none, or a part of it is missing. Knows
// Ethernet with and without VLAN tags, Linux cooked captures (SLL, SLL2), raw IP and the loopback of BSD;
// IPv4 without fragments, and IPv6 without extension headers.
std::optional<Segment> tcp_segment(int link_type, std::span<const std::byte> packet);

// Puts the segments of each flow into their order. What comes twice is taken once. Not thread safe.
class TcpStreams {
  public:
    // Bytes of the flow that follow on what was given out before; empty when they are still missing
    // something.
    std::vector<std::byte> add(const Segment& segment);
    // Bytes held back, because something before them was not captured.
    [[nodiscard]] std::size_t waiting() const;

  private:
    // Places are sequence numbers that go on where those of 32 bits begin again.
    struct Stream {
        bool begun = false;
        std::int64_t next = 0;
        std::map<std::int64_t, std::vector<std::byte>> early;  // by place
    };
    std::map<Flow, Stream> streams_;
};

}  // namespace memtide::fmapi

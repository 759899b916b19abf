#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/base/error.h"
#include "common/fmapi/message.h"
#include "common/fmapi/wire_format.h"

namespace memtide::fmapi {

// MCTP over a byte stream (TCP or unix socket): packets of a 4-byte MCTP header (DSP0236) and up to the 64
// bytes of the baseline transmission unit. The message inside is one byte of MCTP message type and a CCI
// message, over as many packets as it needs. wire_format.h has what differs between peers. No I/O here.
inline constexpr std::size_t kPacketHeaderSize = 4;
inline constexpr std::size_t kPacketPayloadSize = 64;
inline constexpr std::size_t kPacketSize = kPacketHeaderSize + kPacketPayloadSize;

enum class MctpType : std::uint8_t {
    kControl = 0x00,  // DSP0236: see mctp_control.h
    kFmApi = 0x07,    // DSP0234
    kCci = 0x08,      // DSP0281: type-3 devices
};

// Who talks to whom, and about which of the sender's outstanding messages.
struct MctpRoute {
    std::uint8_t destination = 0;  // endpoint ids; 0 (null) is right on a point-to-point stream
    std::uint8_t source = 0;
    std::uint8_t tag = 0;   // 0 to 7
    bool tag_owner = true;  // set by the requester, clear in the response

    friend auto operator<=>(const MctpRoute&, const MctpRoute&) = default;
};

// A message with its route and type, as it travels. Of a control message only the payload counts: what
// follows the type byte.
struct MctpMessage {
    MctpRoute route;
    MctpType type = MctpType::kFmApi;
    Message message;
};

// The route back: endpoints swapped, same tag, not its owner.
MctpRoute reply_route(const MctpRoute& request);

// The message as it goes onto a stream: all its packets, one behind the other, or its frame. A stream of
// frames carries no control messages: nothing comes of them.
std::vector<std::byte> to_packets(const MctpMessage& message, const WireFormat& format = {});
// As to_packets(), behind what `out` holds.
void append_packets(std::vector<std::byte>& out, const MctpMessage& message, const WireFormat& format = {});

// Turns a byte stream back into messages. Messages whose packets are interleaved are told apart by their
// route.
//   assembler.feed(bytes);
//   while (true) { auto next = assembler.next(); if (!next) drop the connection; if (!*next) break; use
//   **next; }
// A stream that broke the protocol once stays broken: there is no way to find the next packet's start.
class PacketAssembler {
  public:
    static constexpr std::size_t kDefaultLimit = 64 * 1024;

    // Messages longer than `limit` bytes (header included) are refused.
    explicit PacketAssembler(const WireFormat& format = {}, std::size_t limit = kDefaultLimit)
        : format_(format), limit_(limit) {}

    // Appends what was read from the stream, in pieces of any size.
    void feed(std::span<const std::byte> bytes);

    // How messages that have not begun yet are read: for a peer that turns out to speak another dialect.
    void set_header_form(const HeaderForm& form) { format_.header = form; }

    // The next whole message; nullopt when more bytes are needed; kProtocol when the stream makes no sense:
    // MCTP version other than 1, a packet out of sequence, one that continues nothing, an unknown message
    // type, a length above the limit, a message that ends before or goes on behind its length.
    Result<std::optional<MctpMessage>> next();

    // Bytes of unfinished packets and messages; 0 between messages, which is where a peer may close.
    [[nodiscard]] std::size_t pending() const;

  private:
    struct Partial {
        std::uint8_t next_sequence = 0;
        std::vector<std::byte> body;  // type byte, header, payload
    };

    [[nodiscard]] std::span<const std::byte> unread() const { return std::span(buffer_).subspan(consumed_); }
    // How long the packet or frame is that comes next; 0 when that is not known yet.
    [[nodiscard]] Result<std::size_t> next_size() const;
    [[nodiscard]] Result<std::size_t> next_frame_size() const;
    [[nodiscard]] Result<std::size_t> next_true_packet_size() const;
    [[nodiscard]] Result<std::size_t> whole_message_size(std::span<const std::byte> body) const;
    Result<std::optional<MctpMessage>> take_frame(std::span<const std::byte> frame) const;
    Result<std::optional<MctpMessage>> take_packet(std::span<const std::byte> packet);
    Result<std::optional<MctpMessage>> finish(const MctpRoute& route, std::span<const std::byte> body) const;
    [[nodiscard]] Result<> check_length(std::span<const std::byte> body, bool last) const;

    WireFormat format_;
    std::size_t limit_;
    std::vector<std::byte> buffer_;
    std::size_t consumed_ = 0;  // bytes of buffer_ already taken
    std::map<MctpRoute, Partial> partials_;
    std::optional<Error> broken_;
};

}  // namespace memtide::fmapi

#include "common/fmapi/mctp.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace memtide::fmapi {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr unsigned kStartOfMessage = 0x80;
constexpr unsigned kEndOfMessage = 0x40;
constexpr unsigned kSequenceShift = 4;
constexpr unsigned kSequenceMask = 3;
constexpr unsigned kTagOwner = 0x08;
constexpr unsigned kTagMask = 0x07;
// A peer may begin this many messages before it ends one: every tag, owned by either side.
constexpr std::size_t kMaxInterleaved = 16;

struct PacketHeader {
    std::uint8_t version = 0;
    bool start = false;
    bool end = false;
    std::uint8_t sequence = 0;
    MctpRoute route;
};

PacketHeader parse_header(std::span<const std::byte> packet) {
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

std::unexpected<Error> broken(std::string why) {
    return fail(ErrorCode::kProtocol, "MCTP stream: " + std::move(why));
}

bool is_known(MctpType type) { return type == MctpType::kFmApi || type == MctpType::kCci; }

}  // namespace

MctpRoute reply_route(const MctpRoute& request) {
    return {.destination = request.source,
            .source = request.destination,
            .tag = request.tag,
            .tag_owner = !request.tag_owner};
}

std::vector<std::byte> to_packets(const MctpMessage& message) {
    std::vector<std::byte> body = encode_message(message.message);
    body.insert(body.begin(), static_cast<std::byte>(message.type));
    const std::size_t packets = (body.size() + kPacketPayloadSize - 1) / kPacketPayloadSize;
    body.resize(packets * kPacketPayloadSize);

    std::vector<std::byte> out;
    out.reserve(packets * kPacketSize);
    const unsigned route_flags = (message.route.tag_owner ? kTagOwner : 0) | (message.route.tag & kTagMask);
    for (std::size_t i = 0; i < packets; ++i) {
        const unsigned flags = (i == 0 ? kStartOfMessage : 0) | (i + 1 == packets ? kEndOfMessage : 0) |
                               (static_cast<unsigned>(i) & kSequenceMask) << kSequenceShift | route_flags;
        for (const unsigned byte :
             {unsigned{kVersion}, unsigned{message.route.destination}, unsigned{message.route.source}, flags})
            out.push_back(static_cast<std::byte>(byte));
        const auto chunk = body.begin() + static_cast<std::ptrdiff_t>(i * kPacketPayloadSize);
        out.insert(out.end(), chunk, chunk + kPacketPayloadSize);
    }
    return out;
}

void PacketAssembler::feed(std::span<const std::byte> bytes) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(consumed_));
    consumed_ = 0;
    if (!broken_) buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::size_t PacketAssembler::pending() const {
    std::size_t bytes = buffer_.size() - consumed_;
    for (const auto& [route, partial] : partials_) bytes += partial.body.size();
    return bytes;
}

Result<std::optional<MctpMessage>> PacketAssembler::next() {
    while (!broken_ && buffer_.size() - consumed_ >= kPacketSize) {
        auto taken = take_packet(std::span(buffer_).subspan(consumed_, kPacketSize));
        consumed_ += kPacketSize;
        if (!taken)
            broken_ = taken.error();
        else if (*taken)
            return taken;
    }
    if (broken_) return std::unexpected(*broken_);
    return std::nullopt;
}

Result<std::optional<MctpMessage>> PacketAssembler::take_packet(std::span<const std::byte> packet) {
    const PacketHeader header = parse_header(packet);
    if (header.version != kVersion)
        return broken(fmt::format("header version {}, expected 1", header.version));

    if (header.start) {
        if (!partials_.contains(header.route) && partials_.size() == kMaxInterleaved)
            return broken(fmt::format("{} messages begun and none ended", kMaxInterleaved + 1));
        // A new start under the same tag abandons what was begun before (DSP0236, 8.8).
        partials_[header.route] = Partial{.next_sequence = header.sequence, .body = {}};
    }
    const auto found = partials_.find(header.route);
    if (found == partials_.end())
        return broken(
            fmt::format("a packet with tag {} continues no message (start bit missing)", header.route.tag));
    Partial& partial = found->second;
    if (header.sequence != partial.next_sequence)
        return broken(fmt::format("packet out of sequence: {} instead of {} in the message with tag {}",
                                  header.sequence, partial.next_sequence, header.route.tag));
    partial.next_sequence = static_cast<std::uint8_t>((partial.next_sequence + 1u) & kSequenceMask);
    partial.body.insert(partial.body.end(), packet.begin() + kPacketHeaderSize, packet.end());
    if (auto ok = check_length(partial, header.end); !ok) return std::unexpected(ok.error());
    if (!header.end) return std::nullopt;

    const auto body = std::move(partial.body);
    partials_.erase(found);
    auto message = decode_message(std::span(body).subspan(1));
    if (!message) return std::unexpected(std::move(message.error()).with_context("MCTP stream"));
    return MctpMessage{header.route, static_cast<MctpType>(body[0]), std::move(*message)};
}

// The message's length is in its CCI header, which the first packet always has whole.
Result<> PacketAssembler::check_length(const Partial& partial, bool last) const {
    const auto type = static_cast<MctpType>(partial.body[0]);
    if (!is_known(type))
        return broken(
            fmt::format("message type {:#04x} is not CXL's", std::to_integer<unsigned>(partial.body[0])));
    const std::size_t size = message_size(std::span(partial.body).subspan(1));
    if (size > limit_) return broken(fmt::format("a message of {} bytes, {} are allowed", size, limit_));
    const std::size_t packets = (1 + size + kPacketPayloadSize - 1) / kPacketPayloadSize;
    const std::size_t got = partial.body.size() / kPacketPayloadSize;
    if (last && got < packets)
        return broken(fmt::format("a message of {} bytes ends after {} of {} packets", size, got, packets));
    if (!last && got >= packets)
        return broken(
            fmt::format("a message of {} bytes goes on after {} packets (end bit missing)", size, got));
    return {};
}

}  // namespace memtide::fmapi

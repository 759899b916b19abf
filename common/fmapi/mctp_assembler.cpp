#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/fmapi/mctp.h"
#include "common/fmapi/mctp_control.h"
#include "common/fmapi/mctp_packet.h"

namespace memtide::fmapi {
namespace {

using namespace detail;

// A peer may begin this many messages before it ends one: every tag, owned by either side.
constexpr std::size_t kMaxInterleaved = 16;

std::unexpected<Error> broken(std::string why) {
    return fail(ErrorCode::kProtocol, "MCTP stream: " + std::move(why));
}

std::unexpected<Error> broken_frame(std::string why) {
    return fail(ErrorCode::kProtocol, "stream of frames: " + std::move(why));
}

bool is_known(MctpType type) {
    return type == MctpType::kFmApi || type == MctpType::kCci || type == MctpType::kControl;
}

}  // namespace

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
    while (!broken_) {
        const auto size = next_size();
        if (size && (*size == 0 || unread().size() < *size)) return std::nullopt;
        if (!size) {
            broken_ = size.error();
            break;
        }
        const auto unit = unread().first(*size);
        consumed_ += *size;
        auto taken = format_.framing == Framing::kFrames ? take_frame(unit) : take_packet(unit);
        if (!taken)
            broken_ = taken.error();
        else if (*taken)
            return taken;
    }
    return std::unexpected(*broken_);
}

Result<std::size_t> PacketAssembler::next_size() const {
    switch (format_.framing) {
        case Framing::kFrames:
            return next_frame_size();
        case Framing::kTruePackets:
            return next_true_packet_size();
        case Framing::kFixedPackets:
            break;
    }
    return kPacketSize;
}

Result<std::size_t> PacketAssembler::next_frame_size() const {
    const auto bytes = unread();
    if (bytes.size() < kFrameHeaderSize) return 0;
    std::size_t length = 0;
    for (std::size_t i = 0; i < kFrameHeaderSize; ++i) {
        const std::size_t byte = format_.frame_length_is_big_endian ? kFrameHeaderSize - 1 - i : i;
        length |= std::to_integer<std::size_t>(bytes[i]) << (8 * byte);
    }
    if (length < kHeaderSize)
        return broken_frame(
            fmt::format("a frame of {} bytes, a CCI message header has {}", length, kHeaderSize));
    if (length > limit_)
        return broken_frame(fmt::format("a message of {} bytes, {} are allowed", length, limit_));
    return kFrameHeaderSize + length;
}

Result<std::optional<MctpMessage>> PacketAssembler::take_frame(std::span<const std::byte> frame) const {
    const auto bytes = frame.subspan(kFrameHeaderSize);
    const std::size_t size = message_size(bytes, format_.header);
    if (size != bytes.size())
        return broken_frame(
            fmt::format("a frame of {} bytes holds a message of {} bytes", bytes.size(), size));
    auto message = decode_message(bytes, format_.header);
    if (!message) return std::unexpected(std::move(message.error()).with_context("stream of frames"));
    const MctpRoute route{.destination = 0,
                          .source = 0,
                          .tag = static_cast<std::uint8_t>(message->tag & kTagMask),
                          .tag_owner = !message->is_response};
    return MctpMessage{route, MctpType::kFmApi, std::move(*message)};
}

// Only the last packet of a message is shorter than 68 bytes. How short follows from the message's length.
Result<std::size_t> PacketAssembler::next_true_packet_size() const {
    const auto bytes = unread();
    if (bytes.size() < kPacketHeaderSize) return 0;
    const PacketHeader header = parse_header(bytes);
    // What is wrong with the packet is found when it is taken; it need not have come whole for that.
    if (header.version != kMctpVersion) return kPacketHeaderSize;
    if (!header.end) return kPacketSize;
    if (header.start) {
        const auto size = whole_message_size(bytes.subspan(kPacketHeaderSize));
        if (!size || *size == 0) return size;
        return kPacketHeaderSize + std::min(*size, kPacketPayloadSize);
    }
    const auto found = partials_.find(header.route);
    if (found == partials_.end()) return kPacketHeaderSize;
    const auto size = whole_message_size(found->second.body);
    if (!size) return size;
    const std::size_t got = found->second.body.size();
    return kPacketHeaderSize + std::min(*size > got ? *size - got : 0, kPacketPayloadSize);
}

// With its type byte; 0 when there are too few bytes of it yet.
Result<std::size_t> PacketAssembler::whole_message_size(std::span<const std::byte> body) const {
    if (body.empty()) return 0;
    if (static_cast<MctpType>(body[0]) == MctpType::kControl) {
        const auto size = control_size(body.subspan(1));
        if (!size) return broken("a control message of unknown length");
        return *size == 0 ? 0 : 1 + *size;
    }
    if (!is_known(static_cast<MctpType>(body[0]))) return 1;  // refused as soon as it is taken
    const std::size_t size = message_size(body.subspan(1), format_.header);
    return size == 0 ? 0 : 1 + size;
}

Result<std::optional<MctpMessage>> PacketAssembler::take_packet(std::span<const std::byte> packet) {
    const PacketHeader header = parse_header(packet);
    const auto payload = packet.subspan(kPacketHeaderSize);
    if (header.version != kMctpVersion)
        return broken(fmt::format("header version {}, expected 1", header.version));
    if (header.start && header.end) {  // most are: no need to collect it
        partials_.erase(header.route);
        if (auto ok = check_length(payload, true); !ok) return std::unexpected(ok.error());
        return finish(header.route, payload);
    }
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
    partial.body.insert(partial.body.end(), payload.begin(), payload.end());
    if (auto ok = check_length(partial.body, header.end); !ok) return std::unexpected(ok.error());
    if (!header.end) return std::nullopt;
    const auto body = std::move(partial.body);
    partials_.erase(found);
    return finish(header.route, body);
}

Result<std::optional<MctpMessage>> PacketAssembler::finish(const MctpRoute& route,
                                                           std::span<const std::byte> body) const {
    const auto type = static_cast<MctpType>(body[0]);
    const auto rest = body.subspan(1);
    if (type == MctpType::kControl) {
        Message control;
        control.payload.assign(rest.begin(), rest.end());
        return MctpMessage{route, type, std::move(control)};
    }
    auto message = decode_message(rest, format_.header);
    if (!message) return std::unexpected(std::move(message.error()).with_context("MCTP stream"));
    return MctpMessage{route, type, std::move(*message)};
}

// The message's length is in its CCI header, which the first packet always has whole.
Result<> PacketAssembler::check_length(std::span<const std::byte> body, bool last) const {
    if (body.empty()) return broken("a packet without a message in it");
    const auto type = static_cast<MctpType>(body[0]);
    if (!is_known(type))
        return broken(fmt::format("message type {:#04x} is not CXL's", std::to_integer<unsigned>(body[0])));
    if (type == MctpType::kControl) {
        if (!last) return broken("a control message longer than a packet");
        return {};
    }
    const std::size_t size = message_size(body.subspan(1), format_.header);
    if (size > limit_) return broken(fmt::format("a message of {} bytes, {} are allowed", size, limit_));
    const std::size_t packets = (1 + size + kPacketPayloadSize - 1) / kPacketPayloadSize;
    const std::size_t got = (body.size() + kPacketPayloadSize - 1) / kPacketPayloadSize;
    if (last && got < packets)
        return broken(fmt::format("a message of {} bytes ends after {} of {} packets", size, got, packets));
    if (!last && got >= packets)
        return broken(
            fmt::format("a message of {} bytes goes on after {} packets (end bit missing)", size, got));
    return {};
}

}  // namespace memtide::fmapi

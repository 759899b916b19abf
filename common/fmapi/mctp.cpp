#include "common/fmapi/mctp.h"

#include <algorithm>

#include "common/fmapi/mctp_packet.h"

namespace memtide::fmapi {
namespace {

using namespace detail;

void append_frame(std::vector<std::byte>& out, const Message& message, const WireFormat& format) {
    const std::size_t begin = out.size();
    out.resize(begin + kFrameHeaderSize);
    append_message(out, message, format.header);
    const std::size_t length = out.size() - begin - kFrameHeaderSize;
    for (std::size_t i = 0; i < kFrameHeaderSize; ++i) {
        const std::size_t byte = format.frame_length_is_big_endian ? kFrameHeaderSize - 1 - i : i;
        out[begin + i] = static_cast<std::byte>(length >> (8 * byte));
    }
}

// Type byte and message.
void append_body(std::vector<std::byte>& out, const MctpMessage& message, const HeaderForm& form) {
    out.push_back(static_cast<std::byte>(message.type));
    if (message.type == MctpType::kControl)
        out.insert(out.end(), message.message.payload.begin(), message.message.payload.end());
    else
        append_message(out, message.message, form);
}

void put_header(std::byte* at, const MctpRoute& route, std::size_t index, bool last) {
    const unsigned flags = (index == 0 ? kStartOfMessage : 0) | (last ? kEndOfMessage : 0) |
                           (static_cast<unsigned>(index) & kSequenceMask) << kSequenceShift |
                           (route.tag_owner ? kTagOwner : 0) | (route.tag & kTagMask);
    at[0] = std::byte{kMctpVersion};
    at[1] = static_cast<std::byte>(route.destination);
    at[2] = static_cast<std::byte>(route.source);
    at[3] = static_cast<std::byte>(flags);
}

}  // namespace

MctpRoute reply_route(const MctpRoute& request) {
    return {.destination = request.source,
            .source = request.destination,
            .tag = request.tag,
            .tag_owner = !request.tag_owner};
}

void append_packets(std::vector<std::byte>& out, const MctpMessage& message, const WireFormat& format) {
    if (format.framing == Framing::kFrames) {
        if (message.type != MctpType::kControl) append_frame(out, message.message, format);
        return;
    }
    // The body goes where the first packet has it, and is then moved apart from its end on, in place.
    const std::size_t begin = out.size();
    out.resize(begin + kPacketHeaderSize);
    append_body(out, message, format.header);
    const std::size_t body = out.size() - begin - kPacketHeaderSize;
    const std::size_t packets = (body + kPacketPayloadSize - 1) / kPacketPayloadSize;
    out.resize(begin + packets * kPacketSize);
    std::byte* const first = out.data() + begin;
    for (std::size_t i = packets; i-- > 1;) {
        std::byte* const to = first + i * kPacketSize + kPacketHeaderSize;
        const std::byte* const from = first + kPacketHeaderSize + i * kPacketPayloadSize;
        const std::size_t size = std::min(kPacketPayloadSize, body - i * kPacketPayloadSize);
        std::copy_backward(from, from + size, to + size);
        put_header(to - kPacketHeaderSize, message.route, i, i + 1 == packets);
    }
    put_header(first, message.route, 0, packets == 1);
    const std::size_t padding = packets * kPacketPayloadSize - body;
    if (format.framing == Framing::kTruePackets)
        out.resize(out.size() - padding);
    else
        std::fill_n(out.end() - static_cast<std::ptrdiff_t>(padding), padding, std::byte{0});
}

std::vector<std::byte> to_packets(const MctpMessage& message, const WireFormat& format) {
    std::vector<std::byte> out;
    append_packets(out, message, format);
    return out;
}

}  // namespace memtide::fmapi

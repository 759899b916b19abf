// Whatever a peer sends in any of the framings and header forms: messages or an error, no more memory than it
// may take, and what was taken for a message survives being sent again. Control messages are answered, and
// what is answered reads back too. What an answer looks like names a dialect of the same framing.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "common/fmapi/dialect.h"
#include "common/fmapi/mctp.h"
#include "common/fmapi/mctp_control.h"

using namespace memtide::fmapi;

namespace {

constexpr HeaderForm kMirrored{.category_in_high_nibble = true, .background_in_low_bit = true};
constexpr std::array kFormats{
    WireFormat{},
    WireFormat{.framing = Framing::kTruePackets},
    WireFormat{.framing = Framing::kFrames},
    WireFormat{.framing = Framing::kFrames, .frame_length_is_big_endian = true},
    WireFormat{.header = kMirrored},
    WireFormat{.framing = Framing::kTruePackets, .header = kMirrored},
};

void require(bool condition) {
    if (!condition) std::abort();
}

void send_again(const MctpMessage& message, const WireFormat& format) {
    PacketAssembler assembler(format);
    assembler.feed(to_packets(message, format));
    const auto again = assembler.next();
    require(again && *again && (*again)->message == message.message && (*again)->type == message.type);
    require(assembler.pending() == 0);
}

void name_dialect(const Message& message, const WireFormat& format) {
    const Dialect& dialect = recognise_dialect(format, message.opcode == Opcode{}, message.payload.size());
    require(dialect.wire.framing == format.framing && find_dialect(dialect.name) == &dialect);
    require(dialect_names().find(dialect.name) != std::string::npos);
}

void take_control(const MctpMessage& message, const WireFormat& format) {
    const auto instance = static_cast<std::uint8_t>(message.message.payload.size());
    std::uint8_t wanted = 0;
    const auto accepted = answer_control(set_endpoint_id_request(instance, 9), wanted);
    require(accepted && wanted == 9 && accepted_endpoint_id(*accepted, instance) == 9);
    std::uint8_t eid = 8;
    auto answer = answer_control(message.message.payload, eid);
    (void)accepted_endpoint_id(message.message.payload, 0);
    require(eid >= 8 && eid != 255);
    if (!answer) return;
    require(control_size(*answer).value_or(answer->size()) == answer->size());
    MctpMessage reply;
    reply.type = MctpType::kControl;
    reply.message.payload = *std::move(answer);
    PacketAssembler assembler(format);
    assembler.feed(to_packets(reply, format));
    const auto next = assembler.next();
    const bool unknown =
        !control_size(reply.message.payload);  // of no known length where packets have theirs
    require(next ? next->has_value() : unknown);
}

}  // namespace

// The first byte is the format, the second says in pieces of what size the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const WireFormat& format = kFormats[data[0] % kFormats.size()];
    const std::size_t piece = data[1] + std::size_t{1};
    auto rest = std::as_bytes(std::span(data + 2, size - 2));
    PacketAssembler assembler(format);
    while (!rest.empty()) {
        const auto now = rest.first(std::min(piece, rest.size()));
        rest = rest.subspan(now.size());
        assembler.feed(now);
        while (true) {
            const auto next = assembler.next();
            if (!next) return 0;
            if (!*next) break;
            if ((*next)->type == MctpType::kControl) {
                take_control(**next, format);
                continue;
            }
            send_again(**next, format);
            if ((*next)->message.is_response) name_dialect((*next)->message, format);
        }
        require(assembler.pending() <= 17 * (PacketAssembler::kDefaultLimit + kPacketSize));
    }
    return 0;
}

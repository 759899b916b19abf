#include "common/fmapi/capture/connections.h"

#include <algorithm>
#include <iterator>

namespace memtide::fmapi {
namespace {

constexpr HeaderForm kMirroredForm{.category_in_high_nibble = true, .background_in_low_bit = true};
// All that a stream may be; what is more likely comes first.
constexpr std::array kFormats{
    WireFormat{.framing = Framing::kFixedPackets},
    WireFormat{.framing = Framing::kTruePackets},
    WireFormat{.framing = Framing::kFrames},
    WireFormat{.framing = Framing::kFrames, .frame_length_is_big_endian = true},
    WireFormat{.framing = Framing::kFixedPackets, .header = kMirroredForm},
    WireFormat{.framing = Framing::kTruePackets, .header = kMirroredForm},
    WireFormat{.framing = Framing::kFrames, .header = kMirroredForm},
    WireFormat{.framing = Framing::kFrames, .frame_length_is_big_endian = true, .header = kMirroredForm}};

void read_end(const CapturedConnection& connection, std::size_t end, const WireFormat& format,
              std::vector<StreamMessage>& into) {
    PacketAssembler assembler(format);
    for (const CapturedBytes& part : connection.sent[end]) {
        assembler.feed(part.bytes);
        for (auto next = assembler.next(); !next || *next; next = assembler.next()) {
            if (!next) {
                into.push_back({part.packet, end, std::unexpected(std::move(next).error())});
                return;
            }
            into.push_back({part.packet, end, **std::move(next)});
        }
    }
}

std::vector<StreamMessage> read_as(const CapturedConnection& connection, const WireFormat& format) {
    std::vector<StreamMessage> messages;
    read_end(connection, 0, format, messages);
    read_end(connection, 1, format, messages);
    std::ranges::stable_sort(messages, {}, &StreamMessage::packet);
    return messages;
}

// How much sense a reading of a connection makes.
struct Sense {
    std::size_t messages = 0;
    std::size_t answers = 0;  // of these: to what the other end had asked
    std::size_t broken = 0;   // ends whose bytes make no sense from some place on

    [[nodiscard]] bool is_perfect() const { return broken == 0 && answers > 0; }
    [[nodiscard]] bool is_more_than(const Sense& other) const {
        const std::size_t mine = messages + answers;
        const std::size_t others = other.messages + other.answers;
        return mine != others ? mine > others : broken < other.broken;
    }
};

Sense sense_of(const std::vector<StreamMessage>& messages) {
    Sense sense;
    std::array<std::map<std::uint8_t, Opcode>, 2> asked;
    for (const StreamMessage& one : messages) {
        if (!one.message) {
            ++sense.broken;
            continue;
        }
        ++sense.messages;
        if (one.message->type == MctpType::kControl) continue;
        const Message& message = one.message->message;
        if (!message.is_response) {
            asked[one.end][message.tag] = message.opcode;
            continue;
        }
        auto& open = asked[1 - one.end];
        const auto request = open.find(message.tag);
        if (request == open.end()) continue;
        if (message.opcode == request->second || message.opcode == Opcode{}) ++sense.answers;
        open.erase(request);
    }
    return sense;
}

}  // namespace

void Connections::add(std::size_t packet, const Segment& segment) {
    const Flow& flow = segment.flow;
    const Flow back{.source_address = flow.destination_address,
                    .destination_address = flow.source_address,
                    .source_port = flow.destination_port,
                    .destination_port = flow.source_port};
    const auto [found, is_new] = latest_.try_emplace(std::minmax(flow, back), all_.size());
    const auto end_of = [&flow](const CapturedConnection& one) {
        return one.flows[0] == flow ? std::size_t{0} : std::size_t{1};
    };
    const auto is_over = [&](const CapturedConnection& one) {
        return segment.starts && !one.sent[end_of(one)].empty();
    };
    if (is_new || is_over(all_[found->second])) {
        found->second = all_.size();
        all_.push_back({.flows = {flow, back}, .sent = {}});
    }
    auto bytes = streams_.add(segment);
    if (bytes.empty()) return;
    CapturedConnection& connection = all_[found->second];
    connection.sent[end_of(connection)].push_back({packet, std::move(bytes)});
}

std::vector<StreamMessage> read_connection(const CapturedConnection& connection,
                                           const std::optional<WireFormat>& format) {
    if (format) return read_as(connection, *format);
    std::vector<StreamMessage> best;
    std::optional<Sense> most;
    for (const WireFormat& candidate : kFormats) {
        auto messages = read_as(connection, candidate);
        const Sense sense = sense_of(messages);
        if (most && !sense.is_more_than(*most)) continue;
        most = sense;
        best = std::move(messages);
        if (sense.is_perfect()) break;
    }
    return best;
}

}  // namespace memtide::fmapi

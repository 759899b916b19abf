#include "common/fmapi/capture/capture.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "common/base/hex.h"
#include "common/fmapi/capture/pcap.h"
#include "common/fmapi/capture/tcp_streams.h"

namespace memtide::fmapi {
namespace {

using Time = std::optional<std::chrono::system_clock::time_point>;

std::string address_text(const std::array<std::byte, 16>& address, std::uint16_t port) {
    char text[INET6_ADDRSTRLEN] = "";
    const bool ipv4 =
        std::ranges::all_of(std::span(address).first(12), [](std::byte b) { return b == std::byte{0}; });
    if (ipv4)
        inet_ntop(AF_INET, address.data() + 12, text, sizeof text);
    else
        inet_ntop(AF_INET6, address.data(), text, sizeof text);
    return fmt::format("{}:{}", text, port);
}

// One direction of packets: a TCP flow, or what a capture of MCTP packets has.
struct Direction {
    PacketAssembler assembler = PacketAssembler();
    bool broken = false;
};

class Collector {
  public:
    void take(Direction& direction, std::span<const std::byte> bytes, const Time& time, std::string source,
              std::string destination) {
        if (direction.broken) return;
        direction.assembler.feed(bytes);
        while (true) {
            const auto next = direction.assembler.next();
            if (next && !*next) return;
            CapturedMessage captured;
            captured.time = time;
            captured.source = source;
            captured.destination = destination;
            if (!next) {
                direction.broken = true;
                captured.error = next.error().message;
                capture.messages.push_back(std::move(captured));
                return;
            }
            if (source.empty()) {
                captured.source = fmt::format("endpoint {}", (*next)->route.source);
                captured.destination = fmt::format("endpoint {}", (*next)->route.destination);
            }
            captured.type = (*next)->type;
            captured.message = (*next)->message;
            add(std::move(captured));
        }
    }

    // Finds what a response answers: the last request with its tag that went the other way.
    void add(CapturedMessage captured) {
        const Message& message = *captured.message;
        const std::size_t index = capture.messages.size();
        if (!message.is_response) {
            open_[{captured.source, captured.destination, message.tag}] = index;
        } else {
            const auto asked = open_.find({captured.destination, captured.source, message.tag});
            if (asked != open_.end()) {
                captured.answers = asked->second;
                open_.erase(asked);
            }
        }
        capture.messages.push_back(std::move(captured));
    }

    Capture capture;

  private:
    std::map<std::tuple<std::string, std::string, std::uint8_t>, std::size_t> open_;
};

// Packets of a capture may end where their message does; the assembler wants them padded, as on a stream.
std::vector<std::byte> padded(std::span<const std::byte> packet) {
    std::vector<std::byte> whole(packet.begin(), packet.end());
    whole.resize(kPacketSize, std::byte{0});
    return whole;
}

void take_mctp(Collector& collector, std::map<MctpRoute, Direction>& directions,
               const CapturedPacket& packet) {
    if (packet.bytes.size() <= kPacketHeaderSize || packet.bytes.size() > kPacketSize) {
        CapturedMessage broken;
        broken.time = packet.time;
        broken.error =
            fmt::format("a packet of {} bytes: MCTP packets here have 5 to 68", packet.bytes.size());
        collector.capture.messages.push_back(std::move(broken));
        return;
    }
    const auto flags = std::to_integer<unsigned>(packet.bytes[3]);
    const MctpRoute route{.destination = std::to_integer<std::uint8_t>(packet.bytes[1]),
                          .source = std::to_integer<std::uint8_t>(packet.bytes[2]),
                          .tag = static_cast<std::uint8_t>(flags & 7),
                          .tag_owner = (flags & 8) != 0};
    Direction& direction = directions[route];
    collector.take(direction, padded(packet.bytes), packet.time, {}, {});
    if (direction.broken) direction = Direction{};  // the next packet stands for itself
}

std::string without_comments(std::string_view text) {
    std::string kept;
    bool comment = false;
    for (const char c : text) {
        if (c == '#') comment = true;
        if (c == '\n') comment = false;
        if (!comment) kept.push_back(c);
    }
    return kept;
}

Result<> take_messages(Collector& collector, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        CapturedMessage captured;
        const auto first = std::to_integer<std::uint8_t>(bytes.front());
        if (first == static_cast<std::uint8_t>(MctpType::kFmApi) ||
            first == static_cast<std::uint8_t>(MctpType::kCci)) {
            captured.type = static_cast<MctpType>(first);
            bytes = bytes.subspan(1);
        }
        auto message = decode_message(bytes);
        if (!message) return std::unexpected(std::move(message).error());
        bytes = bytes.subspan(kHeaderSize + message->payload.size());
        captured.message = *std::move(message);
        collector.add(std::move(captured));
    }
    return {};
}

}  // namespace

Result<Capture> read_capture_file(const std::string& path, std::optional<std::uint16_t> tcp_port) {
    const auto packets = read_pcap(path);
    if (!packets) return std::unexpected(packets.error());
    Collector collector;
    std::map<MctpRoute, Direction> routes;
    std::map<Flow, Direction> flows;
    TcpStreams streams;
    for (const CapturedPacket& packet : *packets) {
        if (packet.link_type == kLinkTypeMctp) {
            take_mctp(collector, routes, packet);
            continue;
        }
        const auto segment = tcp_segment(packet.link_type, packet.bytes);
        if (!segment) continue;
        const Flow& flow = segment->flow;
        if (tcp_port && flow.source_port != *tcp_port && flow.destination_port != *tcp_port) continue;
        if (segment->starts) flows.erase(flow);
        const auto bytes = streams.add(*segment);
        collector.take(flows[flow], bytes, packet.time, address_text(flow.source_address, flow.source_port),
                       address_text(flow.destination_address, flow.destination_port));
    }
    collector.capture.missing_bytes = streams.waiting();
    if (collector.capture.messages.empty() && !packets->empty())
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}: none of its {} packets carries MCTP{}", path, packets->size(),
                                tcp_port ? fmt::format(" on port {}", *tcp_port) : ""));
    return std::move(collector.capture);
}

Result<Capture> read_capture_text(std::string_view text) {
    const auto bytes = parse_hex(without_comments(text));
    if (!bytes) return std::unexpected(bytes.error());
    if (bytes->empty()) return fail(ErrorCode::kInvalidArgument, "no bytes in it");
    Collector collector;
    constexpr std::byte kMctpVersion{1};
    if (bytes->front() == kMctpVersion && bytes->size() % kPacketSize == 0) {
        Direction direction;
        collector.take(direction, *bytes, {}, {}, {});
    } else if (auto taken = take_messages(collector, *bytes); !taken) {
        return std::unexpected(std::move(taken).error());
    }
    return std::move(collector.capture);
}

}  // namespace memtide::fmapi

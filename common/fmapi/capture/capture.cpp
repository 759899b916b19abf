#include "common/fmapi/capture/capture.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "common/base/hex.h"
#include "common/fmapi/capture/connections.h"
#include "common/fmapi/capture/pcap.h"

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

class Collector {
  public:
    // Finds what a response answers: the last request with its tag that went the other way.
    void add(CapturedMessage captured) {
        const std::size_t index = capture.messages.size();
        if (captured.message && captured.type != MctpType::kControl) {
            const Message& message = *captured.message;
            if (!message.is_response) {
                open_[{captured.source, captured.destination, message.tag}] = index;
            } else {
                const auto asked = open_.find({captured.destination, captured.source, message.tag});
                if (asked != open_.end()) {
                    captured.answers = asked->second;
                    open_.erase(asked);
                }
            }
        }
        capture.messages.push_back(std::move(captured));
    }
    // `captured` says when, and who; the message's endpoints where that is not known.
    void add(CapturedMessage captured, Result<MctpMessage>&& message) {
        if (!message) {
            captured.error = message.error().message;
        } else {
            if (captured.source.empty()) {
                captured.source = fmt::format("endpoint {}", message->route.source);
                captured.destination = fmt::format("endpoint {}", message->route.destination);
            }
            captured.type = message->type;
            captured.message = std::move(message->message);
        }
        add(std::move(captured));
    }

    Capture capture;

  private:
    std::map<std::tuple<std::string, std::string, std::uint8_t>, std::size_t> open_;
};

// False when there is nothing more to be read from it.
bool take(Collector& collector, PacketAssembler& assembler, std::span<const std::byte> bytes,
          const Time& time) {
    assembler.feed(bytes);
    while (true) {
        auto next = assembler.next();
        if (next && !*next) return true;
        CapturedMessage captured;
        captured.time = time;
        if (!next) {
            collector.add(std::move(captured), std::unexpected(std::move(next).error()));
            return false;
        }
        collector.add(std::move(captured), **std::move(next));
    }
}

// Packets of a capture may end where their message does; the assembler wants them padded, as on a stream.
std::vector<std::byte> padded(std::span<const std::byte> packet) {
    std::vector<std::byte> whole(packet.begin(), packet.end());
    whole.resize(kPacketSize, std::byte{0});
    return whole;
}

void take_mctp(Collector& collector, std::map<MctpRoute, PacketAssembler>& directions,
               const CapturedPacket& packet, const HeaderForm& form) {
    if (packet.bytes.size() <= kPacketHeaderSize || packet.bytes.size() > kPacketSize) {
        CapturedMessage broken;
        broken.time = packet.time;
        broken.error =
            fmt::format("a packet of {} bytes: MCTP packets here have 5 to 68", packet.bytes.size());
        collector.add(std::move(broken));
        return;
    }
    const auto flags = std::to_integer<unsigned>(packet.bytes[3]);
    const MctpRoute route{.destination = std::to_integer<std::uint8_t>(packet.bytes[1]),
                          .source = std::to_integer<std::uint8_t>(packet.bytes[2]),
                          .tag = static_cast<std::uint8_t>(flags & 7),
                          .tag_owner = (flags & 8) != 0};
    auto& direction = directions.try_emplace(route, WireFormat{.header = form}).first->second;
    if (!take(collector, direction, padded(packet.bytes), packet.time))
        directions.erase(route);  // the next packet stands for itself
}

// In the order in which it was captured, whatever connections there are.
void take_connections(Collector& collector, const Connections& connections,
                      const std::vector<CapturedPacket>& packets, const std::optional<WireFormat>& format) {
    struct Placed {
        std::size_t packet = 0;
        CapturedMessage captured;
        Result<MctpMessage> message;
    };
    std::vector<Placed> all;
    for (const CapturedConnection& connection : connections.all()) {
        for (StreamMessage& one : read_connection(connection, format)) {
            const Flow& flow = connection.flows[one.end];
            CapturedMessage captured;
            captured.time = packets[one.packet].time;
            captured.source = address_text(flow.source_address, flow.source_port);
            captured.destination = address_text(flow.destination_address, flow.destination_port);
            all.push_back({one.packet, std::move(captured), std::move(one.message)});
        }
    }
    std::ranges::stable_sort(all, {}, &Placed::packet);
    for (Placed& one : all) collector.add(std::move(one.captured), std::move(one.message));
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

Result<Capture> read_capture_file(const std::string& path, const CaptureOptions& options) {
    const auto packets = read_pcap(path);
    if (!packets) return std::unexpected(packets.error());
    Collector collector;
    std::map<MctpRoute, PacketAssembler> routes;
    Connections connections;
    const HeaderForm form = options.format ? options.format->header : HeaderForm();
    const auto& port = options.tcp_port;
    for (std::size_t i = 0; i < packets->size(); ++i) {
        const CapturedPacket& packet = (*packets)[i];
        if (packet.link_type == kLinkTypeMctp) {
            take_mctp(collector, routes, packet, form);
            continue;
        }
        const auto segment = tcp_segment(packet.link_type, packet.bytes);
        if (!segment) continue;
        const Flow& flow = segment->flow;
        if (!port || flow.source_port == *port || flow.destination_port == *port)
            connections.add(i, *segment);
    }
    take_connections(collector, connections, *packets, options.format);
    collector.capture.missing_bytes = connections.waiting();
    if (collector.capture.messages.empty() && !packets->empty())
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}: none of its {} packets carries MCTP{}", path, packets->size(),
                                port ? fmt::format(" on port {}", *port) : ""));
    return std::move(collector.capture);
}

Result<Capture> read_capture_text(std::string_view text, const std::optional<WireFormat>& format) {
    const auto bytes = parse_hex(without_comments(text));
    if (!bytes) return std::unexpected(bytes.error());
    if (bytes->empty()) return fail(ErrorCode::kInvalidArgument, "no bytes in it");
    Collector collector;
    constexpr std::byte kMctpVersion{1};
    if (format || (bytes->front() == kMctpVersion && bytes->size() % kPacketSize == 0)) {
        PacketAssembler assembler(format.value_or(WireFormat()));
        (void)take(collector, assembler, *bytes, {});
    } else if (auto taken = take_messages(collector, *bytes); !taken) {
        return std::unexpected(std::move(taken).error());
    }
    return std::move(collector.capture);
}

}  // namespace memtide::fmapi

#include "common/fmapi/capture/tcp_streams.h"

#include <algorithm>

namespace memtide::fmapi {
namespace {

using Bytes = std::span<const std::byte>;

// DLT_ values, as libpcap has them for the link types of files.
constexpr int kNullLoopback = 0;
constexpr int kEthernet = 1;
constexpr int kRawIp = 12;
constexpr int kRawIpOpenBsd = 14;
constexpr int kRawIpInFiles = 101;
constexpr int kLinuxCooked = 113;
constexpr int kLinuxCooked2 = 276;

constexpr unsigned kEtherIpv4 = 0x0800;
constexpr unsigned kEtherIpv6 = 0x86dd;
constexpr unsigned kEtherVlan = 0x8100;
constexpr unsigned kTcp = 6;

unsigned byte_at(Bytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }
unsigned big16(Bytes bytes, std::size_t at) { return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1); }
std::uint32_t big32(Bytes bytes, std::size_t at) { return big16(bytes, at) << 16 | big16(bytes, at + 2); }

std::optional<Bytes> behind(Bytes bytes, std::size_t count) {
    if (bytes.size() < count) return std::nullopt;
    return bytes.subspan(count);
}

std::optional<Bytes> behind_ethernet(Bytes frame) {
    std::size_t at = 12;
    while (frame.size() >= at + 2 && big16(frame, at) == kEtherVlan) at += 4;
    if (frame.size() < at + 2 || (big16(frame, at) != kEtherIpv4 && big16(frame, at) != kEtherIpv6))
        return std::nullopt;
    return behind(frame, at + 2);
}

std::optional<Bytes> ip_packet(int link_type, Bytes packet) {
    switch (link_type) {
        case kNullLoopback:
            return behind(packet, 4);
        case kEthernet:
            return behind_ethernet(packet);
        case kRawIp:
        case kRawIpOpenBsd:
        case kRawIpInFiles:
            return packet;
        case kLinuxCooked:
            return behind(packet, 16);
        case kLinuxCooked2:
            return behind(packet, 20);
        default:
            return std::nullopt;
    }
}

void copy_address(Bytes from, std::array<std::byte, 16>& into) {
    std::ranges::copy(from, into.end() - static_cast<std::ptrdiff_t>(from.size()));
}

std::optional<Bytes> behind_ipv4(Bytes packet, Flow& flow) {
    if (packet.size() < 20) return std::nullopt;
    const std::size_t header = (byte_at(packet, 0) & 0xf) * std::size_t{4};
    const std::size_t total = big16(packet, 2);
    const bool fragment = (big16(packet, 6) & 0x3fff) != 0;
    if (header < 20 || total < header || packet.size() < total || fragment || byte_at(packet, 9) != kTcp)
        return std::nullopt;
    copy_address(packet.subspan(12, 4), flow.source_address);
    copy_address(packet.subspan(16, 4), flow.destination_address);
    return packet.subspan(header, total - header);
}

std::optional<Bytes> behind_ipv6(Bytes packet, Flow& flow) {
    if (packet.size() < 40) return std::nullopt;
    const std::size_t length = big16(packet, 4);
    if (packet.size() < 40 + length || byte_at(packet, 6) != kTcp) return std::nullopt;
    copy_address(packet.subspan(8, 16), flow.source_address);
    copy_address(packet.subspan(24, 16), flow.destination_address);
    return packet.subspan(40, length);
}

}  // namespace

std::optional<Segment> tcp_segment(int link_type, Bytes packet) {
    const auto ip = ip_packet(link_type, packet);
    if (!ip || ip->empty()) return std::nullopt;
    Segment segment;
    const unsigned version = byte_at(*ip, 0) >> 4;
    const auto tcp = version == 4   ? behind_ipv4(*ip, segment.flow)
                     : version == 6 ? behind_ipv6(*ip, segment.flow)
                                    : std::nullopt;
    if (!tcp || tcp->size() < 20) return std::nullopt;
    const std::size_t header = (byte_at(*tcp, 12) >> 4) * std::size_t{4};
    if (header < 20 || tcp->size() < header) return std::nullopt;
    segment.flow.source_port = static_cast<std::uint16_t>(big16(*tcp, 0));
    segment.flow.destination_port = static_cast<std::uint16_t>(big16(*tcp, 2));
    segment.sequence = big32(*tcp, 4);
    segment.starts = (byte_at(*tcp, 13) & 0x02) != 0;
    segment.payload = tcp->subspan(header);
    return segment;
}

std::vector<std::byte> TcpStreams::add(const Segment& segment) {
    Stream& stream = streams_[segment.flow];
    if (segment.starts) {
        stream = {.begun = true, .next = segment.sequence + std::int64_t{1}, .early = {}};
        return {};
    }
    if (segment.payload.empty()) return {};
    if (!stream.begun) {  // the capture began in the middle of the connection
        stream.begun = true;
        stream.next = segment.sequence;
    }
    // Sequence numbers wrap: the place is the one of that number that is nearest to `next`.
    const auto ahead = static_cast<std::int32_t>(segment.sequence - static_cast<std::uint32_t>(stream.next));
    // Sent again, it may be longer than it was.
    std::vector<std::byte>& kept = stream.early[stream.next + ahead];
    if (kept.size() < segment.payload.size()) kept.assign(segment.payload.begin(), segment.payload.end());

    std::vector<std::byte> ready;
    while (!stream.early.empty() && stream.early.begin()->first <= stream.next) {
        const auto& [place, bytes] = *stream.early.begin();
        const std::int64_t known = std::min(stream.next - place, static_cast<std::int64_t>(bytes.size()));
        ready.insert(ready.end(), bytes.begin() + known, bytes.end());
        stream.next += static_cast<std::int64_t>(bytes.size()) - known;
        stream.early.erase(stream.early.begin());
    }
    return ready;
}

std::size_t TcpStreams::waiting() const {
    std::size_t bytes = 0;
    for (const auto& [flow, stream] : streams_)
        for (const auto& [place, early] : stream.early) bytes += early.size();
    return bytes;
}

}  // namespace memtide::fmapi

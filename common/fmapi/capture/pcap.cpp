#include "common/fmapi/capture/pcap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <pcap/pcap.h>

namespace memtide::fmapi {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

struct ClosePcap {
    void operator()(pcap_t* capture) const { pcap_close(capture); }
};
using PcapHandle = std::unique_ptr<pcap_t, ClosePcap>;

// A file can name any time at all; one that the clock cannot hold becomes the first or the last that it can.
std::chrono::system_clock::time_point time_of(const timeval& since_epoch) {
    using Clock = std::chrono::system_clock;
    // Less than the end by more than the four billion microseconds that a packet may be behind its second.
    constexpr seconds kEnd = std::chrono::floor<seconds>(Clock::duration::max()) - std::chrono::hours(2);
    const seconds whole = std::clamp(seconds(since_epoch.tv_sec), -kEnd, kEnd);
    return Clock::time_point(whole + nanoseconds(since_epoch.tv_usec));
}

// Of the file format: its readers turn it round where the byte order is another.
constexpr std::uint32_t kNanosecondMagic = 0xa1b23c4d;
constexpr std::uint32_t kVersion = 4U << 16 | 2U;  // 2.4, the major number first
constexpr std::uint32_t kSnapLength = 65'536;
constexpr std::uint32_t kLinkTypeRawIp = 101;

constexpr std::uint32_t kManagerAddress = 0x0a000001;
constexpr std::uint32_t kSwitchAddress = 0x0a000002;
constexpr std::size_t kFirstManagerPort = 40'000;
constexpr std::size_t kManagerPorts = 20'000;
constexpr std::size_t kHeaders = 40;      // IPv4 and TCP
constexpr std::size_t kSegment = 16'384;  // bytes of payload

void put_big(std::vector<std::byte>& out, std::size_t value, unsigned width) {
    while (width-- > 0) out.push_back(static_cast<std::byte>(value >> (8 * width)));
}

}  // namespace

Result<std::vector<CapturedPacket>> read_pcap(const std::string& path) {
    // libpcap's own message for a missing file is the same for every reason.
    std::unique_ptr<FILE, int (*)(FILE*)> file(path == "-" ? stdin : std::fopen(path.c_str(), "rbe"),
                                               [](FILE* f) { return f == stdin ? 0 : std::fclose(f); });
    if (!file) return fail_errno("open", path, errno);
    char why[PCAP_ERRBUF_SIZE];
    const PcapHandle capture(
        pcap_fopen_offline_with_tstamp_precision(file.get(), PCAP_TSTAMP_PRECISION_NANO, why));
    if (!capture) return fail(ErrorCode::kInvalidArgument, fmt::format("{} is not a capture: {}", path, why));
    (void)file.release();  // closed with the capture

    std::vector<CapturedPacket> packets;
    pcap_pkthdr* header = nullptr;
    const u_char* data = nullptr;
    int got = 0;
    while ((got = pcap_next_ex(capture.get(), &header, &data)) == 1) {
        const auto bytes = std::as_bytes(std::span(data, header->caplen));
        packets.push_back({.time = time_of(header->ts),
                           .link_type = pcap_datalink(capture.get()),
                           .bytes = {bytes.begin(), bytes.end()}});
    }
    if (got == PCAP_ERROR)
        return fail(ErrorCode::kInvalidArgument, fmt::format("{}, behind packet {}: {}", path, packets.size(),
                                                             pcap_geterr(capture.get())));
    return packets;
}

// By hand: the format is two dozen bytes, and libpcap's writer has no word for how a write failed.
Result<PcapWriter> PcapWriter::create(const std::string& path) {
    errno = 0;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    constexpr std::array<std::uint32_t, 6> kHeader{kNanosecondMagic, kVersion,      0, 0,
                                                   kSnapLength,      kLinkTypeRawIp};
    file.write(reinterpret_cast<const char*>(kHeader.data()), sizeof kHeader).flush();
    if (!file) return fail_errno("write to", path, errno);
    return PcapWriter(path, std::move(file));
}

void PcapWriter::add_segment(Connection& connection, Sender sender, bool syn,
                             std::span<const std::byte> payload, std::chrono::system_clock::time_point time) {
    const bool from_manager = sender == Sender::kManager;
    std::uint32_t& sent = from_manager ? connection.sent_by_manager : connection.sent_by_switch;
    std::vector<std::byte> packet;
    packet.reserve(kHeaders + payload.size());
    put_big(packet, 0x4500, 2);  // IPv4, no options
    put_big(packet, kHeaders + payload.size(), 2);
    put_big(packet, 0x00004000, 4);  // no fragments
    put_big(packet, 0x4006, 2);      // time to live, TCP
    put_big(packet, 0, 2);           // a checksum of 0: left to the network card, as captures often have it
    put_big(packet, from_manager ? kManagerAddress : kSwitchAddress, 4);
    put_big(packet, from_manager ? kSwitchAddress : kManagerAddress, 4);
    put_big(packet, from_manager ? connection.manager_port : kSwitchPort, 2);
    put_big(packet, from_manager ? kSwitchPort : connection.manager_port, 2);
    put_big(packet, sent, 4);
    put_big(packet, from_manager ? connection.sent_by_switch : connection.sent_by_manager, 4);
    put_big(packet, syn ? 0x5002 : 0x5018, 2);  // five words of header; SYN, or PSH and ACK
    put_big(packet, 0xffff0000, 4);             // window, checksum
    put_big(packet, 0, 2);
    packet.insert(packet.end(), payload.begin(), payload.end());
    sent += syn ? 1 : static_cast<std::uint32_t>(payload.size());

    const auto since = time.time_since_epoch();
    const auto size = static_cast<std::uint32_t>(packet.size());
    const std::array<std::uint32_t, 4> header{
        static_cast<std::uint32_t>(std::chrono::duration_cast<seconds>(since).count()),
        static_cast<std::uint32_t>(std::chrono::duration_cast<nanoseconds>(since % seconds(1)).count()), size,
        size};
    file_.write(reinterpret_cast<const char*>(header.data()), sizeof header);
    file_.write(reinterpret_cast<const char*>(packet.data()), static_cast<std::streamsize>(packet.size()));
}

Result<> PcapWriter::write(std::uint64_t connection, Sender sender, std::span<const std::byte> bytes,
                           std::chrono::system_clock::time_point time) {
    errno = 0;
    const auto [it, is_new] = connections_.try_emplace(connection);
    Connection& sent = it->second;
    if (is_new) {
        sent.manager_port =
            static_cast<std::uint16_t>(kFirstManagerPort + (connections_.size() - 1) % kManagerPorts);
        add_segment(sent, Sender::kManager, true, {}, time);
        add_segment(sent, Sender::kSwitch, true, {}, time);
    }
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kSegment)))
        add_segment(sent, sender, false, bytes.first(std::min(bytes.size(), kSegment)), time);
    file_.flush();
    if (!file_) return fail_errno("write to", path_, errno);
    return {};
}

}  // namespace memtide::fmapi

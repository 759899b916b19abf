#include "common/fmapi/capture/pcap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <pcap/pcap.h>

#include "common/fmapi/mctp.h"

namespace memtide::fmapi {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

struct ClosePcap {
    void operator()(pcap_t* capture) const { pcap_close(capture); }
};
using PcapHandle = std::unique_ptr<pcap_t, ClosePcap>;

// Of the file format: its readers turn it round where the byte order is another.
constexpr std::uint32_t kNanosecondMagic = 0xa1b23c4d;
constexpr std::uint32_t kVersion = 4U << 16 | 2U;  // 2.4, the major number first
constexpr std::uint32_t kSnapLength = 65'536;

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
        packets.push_back({.time = std::chrono::system_clock::time_point(
                               std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                   seconds(header->ts.tv_sec) + nanoseconds(header->ts.tv_usec))),
                           .link_type = pcap_datalink(capture.get()),
                           .bytes = {bytes.begin(), bytes.end()}});
    }
    if (got == PCAP_ERROR)
        return fail(ErrorCode::kInvalidArgument, fmt::format("{}, behind packet {}: {}", path, packets.size(),
                                                             pcap_geterr(capture.get())));
    return packets;
}

// By hand: libpcap writes only link types that it has a filter compiler for, and MCTP is none of them.
Result<PcapWriter> PcapWriter::create(const std::string& path) {
    errno = 0;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    constexpr std::array<std::uint32_t, 6> kHeader{kNanosecondMagic, kVersion,     0, 0,
                                                   kSnapLength,      kLinkTypeMctp};
    file.write(reinterpret_cast<const char*>(kHeader.data()), sizeof kHeader).flush();
    if (!file) return fail_errno("write to", path, errno);
    return PcapWriter(path, std::move(file));
}

Result<> PcapWriter::write(std::span<const std::byte> stream, std::chrono::system_clock::time_point time) {
    const auto since = time.time_since_epoch();
    errno = 0;
    while (!stream.empty()) {
        const auto packet = stream.first(std::min(stream.size(), kPacketSize));
        stream = stream.subspan(packet.size());
        const auto size = static_cast<std::uint32_t>(packet.size());
        const std::array<std::uint32_t, 4> header{
            static_cast<std::uint32_t>(std::chrono::duration_cast<seconds>(since).count()),
            static_cast<std::uint32_t>(std::chrono::duration_cast<nanoseconds>(since % seconds(1)).count()),
            size, size};
        file_.write(reinterpret_cast<const char*>(header.data()), sizeof header);
        file_.write(reinterpret_cast<const char*>(packet.data()),
                    static_cast<std::streamsize>(packet.size()));
    }
    file_.flush();
    if (!file_) return fail_errno("write to", path_, errno);
    return {};
}

}  // namespace memtide::fmapi

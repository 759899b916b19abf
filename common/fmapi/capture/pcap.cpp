#include "common/fmapi/capture/pcap.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>

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

}  // namespace memtide::fmapi

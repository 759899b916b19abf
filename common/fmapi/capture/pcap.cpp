#include "common/fmapi/capture/pcap.h"

#include <algorithm>
#include <cerrno>

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

constexpr int kSnapLength = 65'536;

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

struct PcapWriter::File {
    PcapHandle capture;
    pcap_dumper_t* dumper = nullptr;
    std::string path;

    File(PcapHandle opened, pcap_dumper_t* open_dumper, std::string name)
        : capture(std::move(opened)), dumper(open_dumper), path(std::move(name)) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { pcap_dump_close(dumper); }
};

Result<PcapWriter> PcapWriter::create(const std::string& path) {
    PcapHandle capture(
        pcap_open_dead_with_tstamp_precision(kLinkTypeMctp, kSnapLength, PCAP_TSTAMP_PRECISION_NANO));
    if (!capture) return fail(ErrorCode::kExhausted, "no memory for a capture");
    pcap_dumper_t* const dumper = pcap_dump_open(capture.get(), path.c_str());
    if (dumper == nullptr) return fail(ErrorCode::kIo, pcap_geterr(capture.get()));
    return PcapWriter(std::make_shared<File>(std::move(capture), dumper, path));
}

Result<> PcapWriter::write(std::span<const std::byte> stream, std::chrono::system_clock::time_point time) {
    const auto since = time.time_since_epoch();
    pcap_pkthdr header{};
    header.ts.tv_sec = std::chrono::duration_cast<seconds>(since).count();
    header.ts.tv_usec =  // nanoseconds, as the file says
        std::chrono::duration_cast<nanoseconds>(since % seconds(1)).count();
    while (!stream.empty()) {
        const auto packet = stream.first(std::min(stream.size(), kPacketSize));
        stream = stream.subspan(packet.size());
        header.caplen = header.len = static_cast<bpf_u_int32>(packet.size());
        pcap_dump(reinterpret_cast<u_char*>(file_->dumper), &header,
                  reinterpret_cast<const u_char*>(packet.data()));
    }
    if (pcap_dump_flush(file_->dumper) != 0) return fail_errno("write to", file_->path, errno);
    return {};
}

}  // namespace memtide::fmapi

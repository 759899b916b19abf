// Captures from anywhere: TCP segments cut out of arbitrary packets, their streams put in order, hexadecimal
// text, and whatever comes out of them told as JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/fmapi/capture/capture.h"
#include "common/fmapi/capture/connections.h"
#include "common/fmapi/capture/tcp_streams.h"
#include "common/fmapi/text/command_text.h"
#include "common/json/write.h"

using namespace memtide::fmapi;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void tell(const Capture& capture) {
    for (const CapturedMessage& captured : capture.messages) {
        require(captured.message.has_value() == captured.error.empty());
        if (captured.answers) require(*captured.answers < capture.messages.size());
        if (!captured.message) continue;
        const Message* const request =
            captured.answers ? &*capture.messages[*captured.answers].message : nullptr;
        require(!memtide::json::write(to_json(*captured.message, request)).empty());
    }
}

// Packets of the length that a byte before each says, into one set of streams: no byte comes out that did not
// go in. What the connections say is read in whatever format makes most sense of it.
void try_packets(int link_type, std::span<const std::byte> bytes) {
    TcpStreams streams;
    Connections connections;
    std::size_t in = 0;
    std::size_t out = 0;
    std::size_t packet = 0;
    while (bytes.size() > 1) {
        const auto length = std::min(std::to_integer<std::size_t>(bytes.front()), bytes.size() - 1);
        if (const auto segment = tcp_segment(link_type, bytes.subspan(1, length))) {
            in += segment->payload.size();
            out += streams.add(*segment).size();
            connections.add(packet++, *segment);
        }
        bytes = bytes.subspan(1 + length);
    }
    require(out + streams.waiting() <= in);
    for (const CapturedConnection& connection : connections.all())
        for (const StreamMessage& one : read_connection(connection, std::nullopt))
            require(one.end < 2 && one.packet < packet);
}

// One stream in segments as a network may deliver them: out of order, again, overlapping. Each two bytes are
// where a segment begins and how long it is. What comes out is the stream, up to the first byte that is
// missing.
void try_stream(std::uint32_t first, std::span<const std::byte> cuts) {
    static const std::vector<std::byte> whole = [] {
        std::vector<std::byte> bytes;
        for (unsigned i = 0; i < 512; ++i) bytes.push_back(static_cast<std::byte>(i * 7 + i / 256));
        return bytes;
    }();
    TcpStreams streams;
    require(streams.add({.flow = {}, .sequence = first - 1, .starts = true, .payload = {}}).empty());
    std::vector<bool> came(whole.size() + 1);
    std::vector<std::byte> out;
    for (; cuts.size() > 1; cuts = cuts.subspan(2)) {
        const auto begin = std::to_integer<std::size_t>(cuts[0]);
        const auto length = std::to_integer<std::size_t>(cuts[1]);
        const auto payload = std::span(whole).subspan(begin, length);
        const auto sequence = first + static_cast<std::uint32_t>(begin);
        const auto ready =
            streams.add({.flow = {}, .sequence = sequence, .starts = false, .payload = payload});
        out.insert(out.end(), ready.begin(), ready.end());
        std::fill_n(came.begin() + static_cast<std::ptrdiff_t>(begin), length, true);
        const auto contiguous =
            static_cast<std::size_t>(std::find(came.begin(), came.end(), false) - came.begin());
        require(std::ranges::equal(out, std::span(whole).first(contiguous)));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    constexpr int kLinkTypes[] = {0, 1, 101, 113, 276, 12};
    const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
    try_packets(kLinkTypes[data[0] % std::size(kLinkTypes)], bytes);
    try_stream(~std::uint32_t{data[0]}, bytes.first(std::min<std::size_t>(bytes.size(), 64)));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const auto capture = read_capture_text(text)) tell(*capture);
    return 0;
}

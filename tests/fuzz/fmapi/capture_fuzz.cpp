// Captures from anywhere: TCP segments cut out of arbitrary packets, their streams put in order, hexadecimal
// text, and whatever comes out of them told as JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    constexpr int kLinkTypes[] = {0, 1, 101, 113, 276};
    const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
    try_packets(kLinkTypes[data[0] % std::size(kLinkTypes)], bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const auto capture = read_capture_text(text)) tell(*capture);
    return 0;
}

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/fmapi/mctp.h"
#include "common/fmapi/wire_format.h"

namespace memtide::fmapi {

// A message of a capture, or what was wrong where one should have been.
struct CapturedMessage {
    std::optional<std::chrono::system_clock::time_point>
        time;            // of its last packet; none in hexadecimal text
    std::string source;  // "127.0.0.1:8600", "endpoint 9"; may be empty
    std::string destination;
    std::optional<MctpType> type;        // none for a message without a packet around it
    std::optional<Message> message;      // none: `error` says why
    std::optional<std::size_t> answers;  // index of the request that this is the response to
    std::string error;
};

struct Capture {
    std::vector<CapturedMessage> messages;
    std::size_t missing_bytes = 0;  // of TCP streams, behind a gap that the capture has
};

struct CaptureOptions {
    std::optional<std::uint16_t> tcp_port = {};  // only connections from or to it
    // How all of it is written; otherwise each connection says it by what makes sense, and MCTP packets and
    // text are as the specification has them.
    std::optional<WireFormat> format = {};
};

// Reads a pcap or pcapng file: MCTP packets, or TCP connections that carry them or frames (Framing).
// kInvalidArgument when nothing of it is the FM API.
Result<Capture> read_capture_file(const std::string& path, const CaptureOptions& options = {});

// Reads hexadecimal text: MCTP packets, or CCI messages, one behind the other; a message may have its MCTP
// message type before it. With a format: what a stream of it is. "#" begins a comment.
Result<Capture> read_capture_text(std::string_view text,
                                  const std::optional<WireFormat>& format = std::nullopt);

}  // namespace memtide::fmapi

#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/fmapi/capture/tcp_streams.h"
#include "common/fmapi/mctp.h"

namespace memtide::fmapi {

// What one end of a connection has sent, in its order, and which packets of the capture that came with.
struct CapturedBytes {
    std::size_t packet = 0;
    std::vector<std::byte> bytes;
};
struct CapturedConnection {
    std::array<Flow, 2> flows;  // of either end
    std::array<std::vector<CapturedBytes>, 2> sent;
};

// Sorts the segments of a capture into connections. Not thread safe.
class Connections {
  public:
    void add(std::size_t packet, const Segment& segment);
    [[nodiscard]] const std::vector<CapturedConnection>& all() const { return all_; }
    // See TcpStreams.
    [[nodiscard]] std::size_t waiting() const { return streams_.waiting(); }

  private:
    TcpStreams streams_;
    std::vector<CapturedConnection> all_;
    std::map<std::pair<Flow, Flow>, std::size_t> latest_;  // by the flows, the smaller one first
};

// A message of a connection, or why there is none and nothing more behind it.
struct StreamMessage {
    std::size_t packet = 0;  // that its last byte came with
    std::size_t end = 0;     // which of the two has sent it
    Result<MctpMessage> message;
};

// All messages of a connection, in the order in which they were captured. Without a format that one is taken
// in which most of it makes sense: messages, and answers to what was asked.
std::vector<StreamMessage> read_connection(const CapturedConnection& connection,
                                           const std::optional<WireFormat>& format);

}  // namespace memtide::fmapi

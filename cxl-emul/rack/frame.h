#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::emul {

// The rack's own small protocol. It runs between `rack` commands and the supervisor (unix socket), and
// between the supervisor and the helper in each guest (virtio-serial). Every frame belongs to a stream, so
// that several commands share one connection.
//
//   u32 payload length | u8 type | 'M' 'T' 'F' | u32 stream | payload       (integers little endian)
//
// Flow control: a side sends kInput, kOutput and kErrorOutput of a stream only as far as the receiver has
// given credit (bytes, kCredit), kWindow at first, so that a reader that does not read holds up its own
// stream only.
enum class FrameType : std::uint8_t {
    kHello = 1,        // either side, after it (re)started; see hello_marker()
    kRequest = 2,      // JSON {"op": …}; opens the stream
    kReply = 3,        // JSON, with {"error": {code, message}} when it failed; ends the stream
    kProgress = 4,     // JSON, before a kReply
    kInput = 5,        // bytes for the program's standard input
    kInputEnd = 6,     // nothing more will come
    kOutput = 7,       // bytes of its standard output
    kErrorOutput = 8,  // bytes of its standard error
    kSignal = 9,       // u32 signal number for the program's process group
    kExit = 10,        // u32 exit code, 128+N for signal N; ends the stream
    kCredit = 11,      // u32 bytes more
    kEvent = 12,       // guest: JSON {"event": …}, stream 0
    kAgentLog = 13,    // guest: bytes of the agent's log, stream 0
};

struct Frame {
    FrameType type = FrameType::kHello;
    std::uint32_t stream = 0;
    std::string payload;

    friend bool operator==(const Frame&, const Frame&) = default;
};

inline constexpr std::size_t kFrameHeaderSize = 12;
inline constexpr std::size_t kMaxFramePayload = 1 << 20;
inline constexpr std::uint32_t kWindow = 256 << 10;  // bytes of credit at the start of a stream
inline constexpr std::size_t kChunk = 16 << 10;  // payload of a data frame; small, so that streams mix well

std::string encode_frame(const Frame& frame);
Frame credit_frame(std::uint32_t stream, std::uint32_t bytes);
// The number in a kExit or kCredit; kProtocol when the payload is too short.
Result<std::uint32_t> frame_number(const Frame& frame);
Frame number_frame(FrameType type, std::uint32_t stream, std::uint32_t number);

// A kHello frame, byte for byte. A peer that (re)starts sends it first; a receiver that lost its place in the
// byte stream skips to the next one.
const std::string& hello_marker();

// Bytes in, frames out.
class FrameParser {
  public:
    // `after_hello`: ignore everything up to and including the next hello marker.
    enum class Start { kAtOnce, kAfterHello };
    explicit FrameParser(Start start = Start::kAtOnce) : skipping_(start == Start::kAfterHello) {}

    void feed(std::string_view bytes);
    // The next frame, or nothing as long as it is not complete; kProtocol when the bytes are no frame, and
    // from then on until reset(). The hello that ends the skipping is given as a frame too.
    Result<std::optional<Frame>> next();
    // Forgets what is buffered and skips to the next hello.
    void reset();

  private:
    std::string buffer_;
    bool skipping_;
};

}  // namespace memtide::emul

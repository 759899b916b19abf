#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/fmapi/opcode.h"
#include "common/fmapi/return_code.h"

namespace memtide::fmapi {

using Payload = std::vector<std::byte>;

// A CCI message header is 12 bytes, little endian (CXL 3.1, 7.6.3, figure 7-20):
//   u8 category [3:0]: 0 request, 1 response | u8 tag | u8 reserved | u16 opcode |
//   u24: payload length [20:0], reserved [22:21], background operation [23] | u16 return code | u16 vendor
//   status
inline constexpr std::size_t kHeaderSize = 12;
inline constexpr std::size_t kMaxPayloadSize = (std::size_t{1} << 21) - 1;

// One CCI message: what the FM API and the tunnelled device commands are made of.
struct Message {
    bool is_response = false;
    std::uint8_t tag = 0;  // chosen by the requester, returned in the response
    Opcode opcode{};
    bool background = false;  // in a response: a background operation was started
    ReturnCode return_code = ReturnCode::kSuccess;
    std::uint16_t vendor_status = 0;
    Payload payload;

    friend bool operator==(const Message&, const Message&) = default;
};

// Where a peer keeps the fields of the header whose place peers disagree on. The default is the
// specification's. Messages inside tunnels have the form of the message around them.
struct HeaderForm {
    bool category_in_high_nibble = false;  // byte 0: category [7:4]
    // Byte 7 mirrored: background operation in bit 0, payload length [20:16] in bits [7:3].
    bool background_in_low_bit = false;

    friend bool operator==(const HeaderForm&, const HeaderForm&) = default;
};

// The header and the payload, which must not be longer than kMaxPayloadSize.
std::vector<std::byte> encode_message(const Message& message, const HeaderForm& form = {});
// As encode_message(), behind what `out` holds.
void append_message(std::vector<std::byte>& out, const Message& message, const HeaderForm& form = {});

// Reads one message; bytes behind its payload are ignored. Fails with kProtocol when `bytes` ends before the
// payload does, and on a category other than request and response.
Result<Message> decode_message(std::span<const std::byte> bytes, const HeaderForm& form = {});

// The whole size of a message, header included, from its first kHeaderSize bytes; 0 when there
// are fewer bytes than that.
std::size_t message_size(std::span<const std::byte> bytes, const HeaderForm& form = {});

Message make_request(Opcode opcode, std::uint8_t tag, Payload payload = {});
// Answers `request`: same tag and opcode. kBackgroundStarted also sets the background bit.
Message make_response(const Message& request, ReturnCode code, Payload payload = {});

// "request Bind vPPB (5201h) tag 7, 6 bytes", for logs.
std::string to_string(const Message& message);

}  // namespace memtide::fmapi

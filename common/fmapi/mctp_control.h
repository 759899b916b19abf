#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/fmapi/message.h"

// MCTP control messages (DSP0236, 12): how endpoints get their ids. A control message is here what follows
// its type byte:
//   u8 [7] request, [6] datagram, [4:0] instance | u8 command | u8 completion code, in responses | data
namespace memtide::fmapi {

enum class ControlCommand : std::uint8_t {
    kSetEndpointId = 0x01,
    kGetEndpointId = 0x02,
    kGetVersionSupport = 0x04,
    kGetMessageTypeSupport = 0x05,
};

// Asks an endpoint to take the id `eid`.
Payload set_endpoint_id_request(std::uint8_t instance, std::uint8_t eid);

// What an endpoint answers that speaks the FM API and whose id is `eid`, which Set Endpoint ID changes.
// Nothing when `message` is no request. A command that it does not have is answered with completion code 05h,
// one that is too short or names a reserved id with 02h or 03h.
std::optional<Payload> answer_control(std::span<const std::byte> message, std::uint8_t& eid);

// The id that an endpoint says it has taken; nothing when this is not that answer, or it refused.
std::optional<std::uint8_t> accepted_endpoint_id(std::span<const std::byte> message, std::uint8_t instance);

// How long the message is that begins with these bytes: control messages do not say so themselves. 0 when
// more of them are needed; nullopt when its command is not known here.
std::optional<std::size_t> control_size(std::span<const std::byte> bytes);

}  // namespace memtide::fmapi

#include "common/fmapi/mctp_control.h"

#include <initializer_list>

namespace memtide::fmapi {
namespace {

constexpr unsigned kRequest = 0x80;
constexpr unsigned kInstanceMask = 0x1f;
constexpr std::uint8_t kFirstEndpointId = 8;  // 0 is none, 1 to 7 are reserved, 255 is everybody
constexpr std::uint8_t kLastEndpointId = 254;

enum Completion : std::uint8_t {
    kSuccess = 0x00,
    kInvalidData = 0x02,
    kInvalidLength = 0x03,
    kUnsupported = 0x05,
};

unsigned byte_at(std::span<const std::byte> bytes, std::size_t index) {
    return std::to_integer<unsigned>(bytes[index]);
}

Payload response(std::span<const std::byte> request, std::initializer_list<unsigned> rest) {
    Payload out{static_cast<std::byte>(byte_at(request, 0) & kInstanceMask), request[1]};
    for (const unsigned value : rest) out.push_back(static_cast<std::byte>(value));
    return out;
}

Payload set_endpoint_id(std::span<const std::byte> request, std::uint8_t& eid) {
    if (request.size() < 4) return response(request, {kInvalidLength});
    const unsigned wanted = byte_at(request, 3);
    if (wanted < kFirstEndpointId || wanted > kLastEndpointId) return response(request, {kInvalidData});
    eid = static_cast<std::uint8_t>(wanted);
    return response(request, {kSuccess, 0 /* accepted, no pool of ids wanted */, wanted, 0});
}

std::optional<std::size_t> request_size(ControlCommand command) {
    switch (command) {
        case ControlCommand::kSetEndpointId:
            return 4;
        case ControlCommand::kGetVersionSupport:
            return 3;
        case ControlCommand::kGetEndpointId:
        case ControlCommand::kGetMessageTypeSupport:
            return 2;
    }
    return std::nullopt;
}

// `entry` bytes for each of those that the fourth byte counts.
std::size_t counted_size(std::span<const std::byte> bytes, std::size_t entry) {
    return bytes.size() < 4 ? 0 : 4 + entry * byte_at(bytes, 3);
}

std::optional<std::size_t> response_size(ControlCommand command, std::span<const std::byte> bytes) {
    if (!request_size(command)) return std::nullopt;
    if (bytes.size() < 3) return 0;
    if (byte_at(bytes, 2) != kSuccess) return 3;
    if (command == ControlCommand::kGetVersionSupport) return counted_size(bytes, 4);
    if (command == ControlCommand::kGetMessageTypeSupport) return counted_size(bytes, 1);
    return 6;
}

}  // namespace

Payload set_endpoint_id_request(std::uint8_t instance, std::uint8_t eid) {
    return {static_cast<std::byte>(kRequest | (instance & kInstanceMask)),
            static_cast<std::byte>(ControlCommand::kSetEndpointId), std::byte{0} /* set */,
            static_cast<std::byte>(eid)};
}

std::optional<Payload> answer_control(std::span<const std::byte> message, std::uint8_t& eid) {
    if (message.size() < 2 || (byte_at(message, 0) & kRequest) == 0) return std::nullopt;
    switch (static_cast<ControlCommand>(message[1])) {
        case ControlCommand::kSetEndpointId:
            return set_endpoint_id(message, eid);
        case ControlCommand::kGetEndpointId:
            return response(message, {kSuccess, eid, 0 /* simple endpoint, dynamic id */, 0});
        case ControlCommand::kGetVersionSupport:
            return response(message, {kSuccess, 1, 0xf1, 0xf3, 0xf1, 0x00});  // 1.3.1
        case ControlCommand::kGetMessageTypeSupport:
            return response(message, {kSuccess, 1, 0x07 /* FM API */});
    }
    return response(message, {kUnsupported});
}

std::optional<std::uint8_t> accepted_endpoint_id(std::span<const std::byte> message, std::uint8_t instance) {
    if (message.size() < 5 || byte_at(message, 0) != (instance & kInstanceMask) ||
        static_cast<ControlCommand>(message[1]) != ControlCommand::kSetEndpointId ||
        byte_at(message, 2) != kSuccess || (byte_at(message, 3) & 0x30) != 0)
        return std::nullopt;
    return std::to_integer<std::uint8_t>(message[4]);
}

std::optional<std::size_t> control_size(std::span<const std::byte> bytes) {
    if (bytes.size() < 2) return 0;
    const auto command = static_cast<ControlCommand>(bytes[1]);
    return (byte_at(bytes, 0) & kRequest) != 0 ? request_size(command) : response_size(command, bytes);
}

}  // namespace memtide::fmapi

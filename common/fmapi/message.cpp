#include "common/fmapi/message.h"

#include <fmt/format.h>

#include "common/fmapi/codec.h"

namespace memtide::fmapi {
namespace {

constexpr std::uint32_t kLengthMask = 0x1fffff;
constexpr std::uint32_t kBackgroundBit = 1u << 23;
constexpr std::size_t kLengthOffset = 5;

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t width) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i)
        value |= std::to_integer<std::uint32_t>(bytes[offset + i]) << (8 * i);
    return value;
}

}  // namespace

std::vector<std::byte> encode_message(const Message& message) {
    std::vector<std::byte> out;
    out.reserve(kHeaderSize + message.payload.size());
    const auto length = static_cast<std::uint32_t>(message.payload.size()) & kLengthMask;
    detail::put(out, message.is_response ? 1 : 0, 1);
    detail::put(out, message.tag, 1);
    detail::put(out, 0, 1);
    detail::put(out, static_cast<std::uint16_t>(message.opcode), 2);
    detail::put(out, length | (message.background ? kBackgroundBit : 0), 3);
    detail::put(out, static_cast<std::uint16_t>(message.return_code), 2);
    detail::put(out, message.vendor_status, 2);
    out.insert(out.end(), message.payload.begin(), message.payload.begin() + length);
    return out;
}

std::size_t message_size(std::span<const std::byte> bytes) {
    if (bytes.size() < kHeaderSize) return 0;
    return kHeaderSize + (number_at(bytes, kLengthOffset, 3) & kLengthMask);
}

Result<Message> decode_message(std::span<const std::byte> bytes) {
    if (bytes.size() < kHeaderSize)
        return fail(ErrorCode::kProtocol,
                    fmt::format("a CCI message header has {} bytes, {} came", kHeaderSize, bytes.size()));
    const std::size_t size = message_size(bytes);
    if (bytes.size() < size)
        return fail(ErrorCode::kProtocol,
                    fmt::format("the CCI message header announces {} bytes of payload, {} came",
                                size - kHeaderSize, bytes.size() - kHeaderSize));
    const std::uint32_t category = number_at(bytes, 0, 1) & 0xf;
    if (category > 1)
        return fail(ErrorCode::kProtocol,
                    fmt::format("CCI message category {} is neither request nor response", category));
    const std::uint32_t length_word = number_at(bytes, kLengthOffset, 3);
    return Message{
        .is_response = category == 1,
        .tag = std::to_integer<std::uint8_t>(bytes[1]),
        .opcode = static_cast<Opcode>(number_at(bytes, 3, 2)),
        .background = (length_word & kBackgroundBit) != 0,
        .return_code = static_cast<ReturnCode>(number_at(bytes, 8, 2)),
        .vendor_status = static_cast<std::uint16_t>(number_at(bytes, 10, 2)),
        .payload = Payload(bytes.begin() + kHeaderSize, bytes.begin() + static_cast<std::ptrdiff_t>(size))};
}

Message make_request(Opcode opcode, std::uint8_t tag, Payload payload) {
    Message message;
    message.tag = tag;
    message.opcode = opcode;
    message.payload = std::move(payload);
    return message;
}

Message make_response(const Message& request, ReturnCode code, Payload payload) {
    Message message;
    message.is_response = true;
    message.tag = request.tag;
    message.opcode = request.opcode;
    message.background = code == ReturnCode::kBackgroundStarted;
    message.return_code = code;
    message.payload = std::move(payload);
    return message;
}

std::string to_string(const Message& message) {
    std::string text = fmt::format("{} {} tag {}, {} bytes", message.is_response ? "response" : "request",
                                   to_string(message.opcode), message.tag, message.payload.size());
    if (message.is_response) text += ", " + to_string(message.return_code);
    return text;
}

}  // namespace memtide::fmapi

#include "common/fmapi/message.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::fmapi {
namespace {

constexpr std::uint32_t kLengthMask = 0x1fffff;
constexpr std::size_t kOpcodeOffset = 3;
constexpr std::size_t kLengthOffset = 5;
constexpr unsigned kBackgroundBit = 0x80;  // of byte 7
constexpr std::size_t kTunnelRequestHeader = 5;
constexpr std::size_t kTunnelResponseHeader = 4;

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t width) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i)
        value |= std::to_integer<std::uint32_t>(bytes[offset + i]) << (8 * i);
    return value;
}

// The fields that forms have in different places.
struct FormedFields {
    unsigned category = 0;
    std::uint32_t length = 0;
    bool background = false;
};

FormedFields read_formed(std::span<const std::byte> header, const HeaderForm& form) {
    FormedFields fields;
    const auto first = std::to_integer<unsigned>(header[0]);
    fields.category = form.category_in_high_nibble ? first >> 4 : first & 0xf;
    const auto top = std::to_integer<unsigned>(header[kLengthOffset + 2]);
    const std::uint32_t low = number_at(header, kLengthOffset, 2);
    if (form.background_in_low_bit) {
        fields.length = low | (top >> 3) << 16;
        fields.background = (top & 1) != 0;
    } else {
        fields.length = (low | top << 16) & kLengthMask;
        fields.background = (top & kBackgroundBit) != 0;
    }
    return fields;
}

void write_formed(std::span<std::byte> header, const FormedFields& fields, const HeaderForm& form) {
    header[0] = static_cast<std::byte>(form.category_in_high_nibble ? fields.category << 4 : fields.category);
    header[kLengthOffset] = static_cast<std::byte>(fields.length);
    header[kLengthOffset + 1] = static_cast<std::byte>(fields.length >> 8);
    const unsigned top = fields.length >> 16;
    header[kLengthOffset + 2] =
        static_cast<std::byte>(form.background_in_low_bit ? top << 3 | (fields.background ? 1u : 0u)
                                                          : top | (fields.background ? kBackgroundBit : 0u));
}

// Rewrites the headers of the messages in a tunnel's payload, in place: they have the same size in all forms.
void convert_tunnelled(std::span<std::byte> payload, Opcode opcode, bool is_response, const HeaderForm& from,
                       const HeaderForm& to) {
    while (from != to && opcode == Opcode::kTunnelManagementCommand) {
        const std::size_t before = is_response ? kTunnelResponseHeader : kTunnelRequestHeader;
        if (payload.size() < before + kHeaderSize) return;
        const auto inner = payload.subspan(before);
        const FormedFields fields = read_formed(inner, from);
        write_formed(inner, fields, to);
        opcode = static_cast<Opcode>(number_at(inner, kOpcodeOffset, 2));
        is_response = fields.category == 1;
        payload = inner.subspan(kHeaderSize);
    }
}

}  // namespace

void append_message(std::vector<std::byte>& out, const Message& message, const HeaderForm& form) {
    const std::size_t begin = out.size();
    const std::size_t length = message.payload.size() & kLengthMask;
    out.resize(begin + kHeaderSize + length);
    const std::span<std::byte> bytes = std::span(out).subspan(begin);
    const auto put16 = [&](std::size_t at, unsigned value) {
        bytes[at] = static_cast<std::byte>(value);
        bytes[at + 1] = static_cast<std::byte>(value >> 8);
    };
    write_formed(bytes,
                 {.category = message.is_response ? 1u : 0u,
                  .length = static_cast<std::uint32_t>(length),
                  .background = message.background},
                 form);
    bytes[1] = static_cast<std::byte>(message.tag);
    bytes[2] = std::byte{0};
    put16(kOpcodeOffset, static_cast<unsigned>(message.opcode));
    put16(8, static_cast<unsigned>(message.return_code));
    put16(10, message.vendor_status);
    std::copy_n(message.payload.begin(), length, bytes.begin() + kHeaderSize);
    convert_tunnelled(bytes.subspan(kHeaderSize), message.opcode, message.is_response, {}, form);
}

std::vector<std::byte> encode_message(const Message& message, const HeaderForm& form) {
    std::vector<std::byte> out;
    append_message(out, message, form);
    return out;
}

std::size_t message_size(std::span<const std::byte> bytes, const HeaderForm& form) {
    if (bytes.size() < kHeaderSize) return 0;
    return kHeaderSize + read_formed(bytes, form).length;
}

Result<Message> decode_message(std::span<const std::byte> bytes, const HeaderForm& form) {
    if (bytes.size() < kHeaderSize)
        return fail(ErrorCode::kProtocol,
                    fmt::format("a CCI message header has {} bytes, {} came", kHeaderSize, bytes.size()));
    const FormedFields fields = read_formed(bytes, form);
    const std::size_t size = kHeaderSize + fields.length;
    if (bytes.size() < size)
        return fail(ErrorCode::kProtocol,
                    fmt::format("the CCI message header announces {} bytes of payload, {} came",
                                size - kHeaderSize, bytes.size() - kHeaderSize));
    if (fields.category > 1)
        return fail(ErrorCode::kProtocol,
                    fmt::format("CCI message category {} is neither request nor response", fields.category));
    Message message{
        .is_response = fields.category == 1,
        .tag = std::to_integer<std::uint8_t>(bytes[1]),
        .opcode = static_cast<Opcode>(number_at(bytes, kOpcodeOffset, 2)),
        .background = fields.background,
        .return_code = static_cast<ReturnCode>(number_at(bytes, 8, 2)),
        .vendor_status = static_cast<std::uint16_t>(number_at(bytes, 10, 2)),
        .payload = Payload(bytes.begin() + kHeaderSize, bytes.begin() + static_cast<std::ptrdiff_t>(size))};
    convert_tunnelled(message.payload, message.opcode, message.is_response, form, {});
    return message;
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

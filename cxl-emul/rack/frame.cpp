#include "cxl-emul/rack/frame.h"

#include <fmt/format.h>

namespace memtide::emul {
namespace {

void put_u32(std::string& out, std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

std::uint32_t get_u32(std::string_view bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
        value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return value;
}

}  // namespace

std::string encode_frame(const Frame& frame) {
    std::string out;
    out.reserve(kFrameHeaderSize + frame.payload.size());
    put_u32(out, static_cast<std::uint32_t>(frame.payload.size()));
    out += static_cast<char>(frame.type);
    out += "MTF";
    put_u32(out, frame.stream);
    out += frame.payload;
    return out;
}

Frame number_frame(FrameType type, std::uint32_t stream, std::uint32_t number) {
    Frame frame{type, stream, {}};
    put_u32(frame.payload, number);
    return frame;
}

Frame credit_frame(std::uint32_t stream, std::uint32_t bytes) {
    return number_frame(FrameType::kCredit, stream, bytes);
}

Result<std::uint32_t> frame_number(const Frame& frame) {
    if (frame.payload.size() < 4) return fail(ErrorCode::kProtocol, "frame without its number");
    return get_u32(frame.payload);
}

const std::string& hello_marker() {
    static const std::string marker = encode_frame({FrameType::kHello, 0, "memtide rack protocol 1\n"});
    return marker;
}

void FrameParser::feed(std::string_view bytes) { buffer_ += bytes; }

void FrameParser::reset() {
    buffer_.clear();
    skipping_ = true;
}

Result<std::optional<Frame>> FrameParser::next() {
    if (skipping_) {
        const auto at = buffer_.find(hello_marker());
        if (at == std::string::npos) {
            // Keep what may be the first part of a marker.
            if (buffer_.size() > hello_marker().size())
                buffer_.erase(0, buffer_.size() - hello_marker().size());
            return std::nullopt;
        }
        buffer_.erase(0, at);
        skipping_ = false;
    }
    if (buffer_.size() < kFrameHeaderSize) return std::nullopt;
    const auto size = get_u32(buffer_);
    const auto type = static_cast<std::uint8_t>(buffer_[4]);
    if (std::string_view(buffer_).substr(5, 3) != "MTF" || size > kMaxFramePayload || type < 1 ||
        type > static_cast<std::uint8_t>(FrameType::kAgentLog))
        return fail(ErrorCode::kProtocol, "bytes that are no frame of the rack's protocol");
    if (buffer_.size() < kFrameHeaderSize + size) return std::nullopt;
    Frame frame{static_cast<FrameType>(type), get_u32(std::string_view(buffer_).substr(8)),
                buffer_.substr(kFrameHeaderSize, size)};
    buffer_.erase(0, kFrameHeaderSize + size);
    return frame;
}

}  // namespace memtide::emul

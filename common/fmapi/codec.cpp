#include "common/fmapi/codec.h"

#include <fmt/format.h>

namespace memtide::fmapi::detail {

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i)
        out.push_back(i < 8 ? static_cast<std::byte>(value >> (8 * i)) : std::byte{0});
}

bool Reader::need(std::size_t width, std::string_view name) {
    if (failed_) return false;
    if (remaining() >= width) return true;
    failed_ = true;
    missing_ = path_ + std::string(name);
    missing_width_ = width;
    return false;
}

std::uint64_t Reader::take(std::size_t width, std::string_view name) {
    if (!need(width, name)) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i)
        value |= std::to_integer<std::uint64_t>(bytes_[offset_ + i]) << (8 * i);
    offset_ += width;
    return value;
}

void Reader::take_bytes(std::span<std::byte> into, std::string_view name) {
    if (!need(into.size(), name)) return;
    std::ranges::copy(bytes_.subspan(offset_, into.size()), into.begin());
    offset_ += into.size();
}

void Reader::skip(std::size_t count) {
    if (need(count, "reserved bytes")) offset_ += count;
}

void Reader::enter(std::string_view name, std::optional<std::size_t> index) {
    if (failed_) return;
    path_lengths_.push_back(path_.size());
    path_ += index ? fmt::format("{}[{}].", name, *index) : fmt::format("{}.", name);
}

void Reader::leave() {
    // After a failure the path is not needed any more: the error holds its own copy.
    if (failed_ || path_lengths_.empty()) return;
    path_.resize(path_lengths_.back());
    path_lengths_.pop_back();
}

Error Reader::error(std::string_view payload) const {
    return {ErrorCode::kProtocol,
            fmt::format("{} too short: \"{}\" needs bytes {} to {}, the payload has {}", payload, missing_,
                        offset_, offset_ + missing_width_ - 1, bytes_.size())};
}

void Describer::add(std::string name, std::size_t width, bool is_list, bool optional) {
    rows.push_back({std::move(name), offset, width, is_list, optional});
    if (!is_list) offset += width;
}

}  // namespace memtide::fmapi::detail

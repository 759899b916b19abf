#include "cxl-emul/switch/allocation.h"

#include <algorithm>

namespace memtide::emul {
namespace {

std::optional<Bytes> first_gap(std::span<const Slice> slices, Bytes device_size, Bytes size) {
    std::vector<Slice> taken;
    std::ranges::copy_if(slices, std::back_inserter(taken), [](const Slice& s) { return s.size.value != 0; });
    std::ranges::sort(taken, {}, &Slice::offset);
    Bytes start;
    for (const Slice& slice : taken) {
        if (slice.offset - start >= size) return start;
        start = slice.offset + slice.size;
    }
    if (device_size - start >= size) return start;
    return std::nullopt;
}

}  // namespace

std::optional<std::vector<Slice>> allocate(std::span<const Slice> current, Bytes device_size,
                                           std::size_t first, std::span<const Bytes> sizes) {
    std::vector<Slice> slices(current.begin(), current.end());
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (slices[first + i].size != sizes[i]) slices[first + i] = {};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (slices[first + i].size == sizes[i]) continue;
        const auto offset = first_gap(slices, device_size, sizes[i]);
        if (!offset) return std::nullopt;
        slices[first + i] = {*offset, sizes[i]};
    }
    return slices;
}

}  // namespace memtide::emul

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "common/base/bytes.h"

namespace memtide::emul {

// Where an LD's memory is in its device.
struct Slice {
    Bytes offset;
    Bytes size;  // 0: no memory; then offset is 0 too
    friend bool operator==(const Slice&, const Slice&) = default;
};

// The slices after LDs `first`, `first` + 1, ... are given `sizes`. LDs whose size stays keep their slice:
// their content is theirs. The others get the first gap that is large enough, in order of their number, since
// an LD's memory is contiguous. Nothing when some LD finds no gap, though the sum may fit.
std::optional<std::vector<Slice>> allocate(std::span<const Slice> current, Bytes device_size,
                                           std::size_t first, std::span<const Bytes> sizes);

}  // namespace memtide::emul

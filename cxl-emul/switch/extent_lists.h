#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "common/fmapi/commands/dynamic_capacity.h"
#include "cxl-emul/switch/range_set.h"

// Small questions about lists of extents; only for the files of DynamicCapacity.
namespace memtide::emul {

inline bool is_tagged(const fmapi::DcTag& tag) { return tag != fmapi::DcTag{}; }

// dpa + length must not be beyond 2^64.
template <typename Extent>
ByteRange range_of(const Extent& extent) {
    return {extent.dpa, extent.dpa + extent.length};
}

inline bool has_tag(const std::vector<fmapi::DcExtent>& extents, const fmapi::DcTag& tag) {
    return std::ranges::find(extents, tag, &fmapi::DcExtent::tag) != extents.end();
}

inline std::uint64_t length_of(const std::vector<fmapi::DcExtent>& extents) {
    std::uint64_t length = 0;
    for (const fmapi::DcExtent& extent : extents) length += extent.length;
    return length;
}

inline RangeSet union_of(std::initializer_list<const RangeSet*> sets) {
    RangeSet all;
    for (const RangeSet* set : sets)
        for (const ByteRange& range : set->ranges()) all.add(range);
    return all;
}

inline RangeSet memory_of(const std::vector<fmapi::DcExtent>& extents) {
    RangeSet all;
    for (const fmapi::DcExtent& extent : extents) all.add(range_of(extent));
    return all;
}

inline bool covers(const RangeSet& set, const RangeSet& other) {
    return std::ranges::all_of(other.ranges(), [&](const ByteRange& range) { return set.contains(range); });
}

// The extent that the range is inside of, or null.
inline const fmapi::DcExtent* extent_with(const std::vector<fmapi::DcExtent>& extents, ByteRange range) {
    for (const fmapi::DcExtent& extent : extents)
        if (extent.dpa <= range.begin && range.end <= extent.dpa + extent.length) return &extent;
    return nullptr;
}

}  // namespace memtide::emul

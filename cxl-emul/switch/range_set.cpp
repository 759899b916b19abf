#include "cxl-emul/switch/range_set.h"

#include <algorithm>
#include <functional>

namespace memtide::emul {

void RangeSet::add(ByteRange range) {
    if (range.begin >= range.end) return;
    const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &ByteRange::end);
    auto last = first;
    for (; last != ranges_.end() && last->begin <= range.end; ++last) {
        range.begin = std::min(range.begin, last->begin);
        range.end = std::max(range.end, last->end);
    }
    ranges_.insert(ranges_.erase(first, last), range);
}

void RangeSet::remove(ByteRange range) {
    std::vector<ByteRange> left;
    for (const ByteRange& own : ranges_) {
        const ByteRange before{own.begin, std::min(own.end, range.begin)};
        const ByteRange behind{std::max(own.begin, range.end), own.end};
        if (own.end <= range.begin || own.begin >= range.end || range.begin >= range.end) {
            left.push_back(own);
            continue;
        }
        if (before.begin < before.end) left.push_back(before);
        if (behind.begin < behind.end) left.push_back(behind);
    }
    ranges_ = std::move(left);
}

std::uint64_t RangeSet::size() const {
    std::uint64_t total = 0;
    for (const ByteRange& range : ranges_) total += range.size();
    return total;
}

bool RangeSet::contains(ByteRange range) const {
    return std::ranges::any_of(
        ranges_, [&](const ByteRange& own) { return own.begin <= range.begin && range.end <= own.end; });
}

bool RangeSet::overlaps(ByteRange range) const {
    return std::ranges::any_of(
        ranges_, [&](const ByteRange& own) { return own.begin < range.end && range.begin < own.end; });
}

RangeSet RangeSet::within(ByteRange window) const {
    RangeSet part;
    for (const ByteRange& own : ranges_)
        part.add({std::max(own.begin, window.begin), std::min(own.end, window.end)});
    return part;
}

std::optional<std::vector<ByteRange>> RangeSet::fewest(std::uint64_t size) const {
    if (const auto whole = tightest(size)) return std::vector{*whole};
    std::vector<ByteRange> taken;
    std::vector<ByteRange> largest_first = ranges_;
    std::ranges::stable_sort(largest_first, std::ranges::greater(), &ByteRange::size);
    for (const ByteRange& own : largest_first) {
        if (size == 0) break;
        taken.push_back({own.begin, own.begin + std::min(size, own.size())});
        size -= taken.back().size();
    }
    if (size != 0) return std::nullopt;
    std::ranges::sort(taken, {}, &ByteRange::begin);
    return taken;
}

std::optional<ByteRange> RangeSet::tightest(std::uint64_t size) const {
    const ByteRange* best = nullptr;
    for (const ByteRange& own : ranges_)
        if (own.size() >= size && (best == nullptr || own.size() < best->size())) best = &own;
    if (best == nullptr) return std::nullopt;
    return ByteRange{best->begin, best->begin + size};
}

}  // namespace memtide::emul

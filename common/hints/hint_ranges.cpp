#include "common/hints/hint_ranges.h"

#include <algorithm>

namespace memtide {

std::string_view to_string(Hint hint) {
    switch (hint) {
        case Hint::kNone:
            return "none";
        case Hint::kHot:
            return "hot";
        case Hint::kCold:
            return "cold";
        case Hint::kPin:
            return "pin";
    }
    return "?";
}

bool HintRanges::set(HintRange range, std::size_t most) {
    if (range.first >= range.end) return true;
    // From the first range that touches it to the last, neighbours included: they may become one with it.
    const auto begin = std::ranges::lower_bound(ranges_, range.first, {}, &HintRange::end);
    const auto end = std::ranges::upper_bound(begin, ranges_.end(), range.end, {}, &HintRange::first);
    std::vector<HintRange> instead;
    const auto add = [&instead](HintRange more) {
        if (more.first >= more.end || more.hint == Hint::kNone) return;
        if (!instead.empty() && instead.back().end == more.first && instead.back().hint == more.hint)
            instead.back().end = more.end;
        else
            instead.push_back(more);
    };
    for (auto old = begin; old != end; ++old) add({old->first, std::min(old->end, range.first), old->hint});
    add(range);
    for (auto old = begin; old != end; ++old) add({std::max(old->first, range.end), old->end, old->hint});

    const auto replaced = static_cast<std::size_t>(end - begin);
    if (instead.size() > replaced && ranges_.size() - replaced + instead.size() > most) return false;
    const std::size_t in_place = std::min(replaced, instead.size());
    const auto middle = std::copy_n(instead.begin(), in_place, begin);
    if (in_place < replaced)
        ranges_.erase(middle, end);
    else
        ranges_.insert(middle, instead.begin() + static_cast<std::ptrdiff_t>(in_place), instead.end());
    return true;
}

std::uint64_t HintRanges::pages_of(Hint hint) const {
    std::uint64_t pages = 0;
    for (const HintRange& range : ranges_) pages += range.hint == hint ? range.end - range.first : 0;
    return pages;
}

Hint HintCursor::of(std::uint64_t first, std::uint64_t pages) {
    while (!ranges_.empty() && ranges_.front().end <= first) ranges_ = ranges_.subspan(1);
    Hint found = Hint::kNone;
    std::uint64_t cold = 0;
    for (const HintRange& range : ranges_) {
        if (range.first >= first + pages) break;
        if (range.hint == Hint::kPin) return Hint::kPin;
        if (range.hint == Hint::kHot) found = Hint::kHot;
        if (range.hint == Hint::kCold)
            cold += std::min(range.end, first + pages) - std::max(range.first, first);
    }
    return found == Hint::kNone && cold == pages ? Hint::kCold : found;
}

}  // namespace memtide

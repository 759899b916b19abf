#include "cxl-emul/switch/topology_claims.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::emul {

void Claims::claim(const std::string& key, const YamlValue& at) {
    if (!at.is_sound()) return;
    const auto [owner, is_new] = owners_.try_emplace(key, at.where());
    if (!is_new) at.reject(fmt::format("{} {} is there already, at {}", what_, key, owner->second), advice_);
}

void SerialClaims::claim(SerialNumber first, std::uint64_t count, std::string owner, const YamlValue& at) {
    if (!at.is_sound()) return;
    if (first.value > UINT64_MAX - (count - 1)) {
        at.reject(
            "leaves no room for the serial numbers of the LDs, which follow it",
            fmt::format("end it in zeros, and at most at {}", format_serial({UINT64_MAX - (count - 1)})));
        return;
    }
    const Range range{first.value, first.value + count - 1, std::move(owner)};
    std::uint64_t highest = range.last;
    for (const Range& other : ranges_) highest = std::max(highest, other.last);
    // Device serial numbers are best told apart by their upper half; that leaves room for LDs below it.
    const std::uint64_t free = ((highest >> 32) + 1) << 32;
    for (const Range& other : ranges_)
        if (range.first <= other.last && other.first <= range.last)
            at.reject(
                fmt::format("serial numbers {} to {} meet those of {}, {} to {}; an mld takes one more for "
                            "each LD",
                            format_serial({range.first}), format_serial({range.last}), other.owner,
                            format_serial({other.first}), format_serial({other.last})),
                free > highest ? fmt::format("{} and what follows is free", format_serial({free})) : "");
    ranges_.push_back(range);
}

}  // namespace memtide::emul

#include "tiering-agent/hotplug/state.h"

#include <fmt/format.h>

namespace memtide::agent {

std::string_view to_string(RegionStatus status) {
    switch (status) {
        case RegionStatus::kAbsent:
            return "absent";
        case RegionStatus::kFound:
            return "found";
        case RegionStatus::kOnline:
            return "online";
        case RegionStatus::kDraining:
            return "draining";
        case RegionStatus::kOffline:
            return "offline";
        case RegionStatus::kFailed:
            return "failed";
    }
    return "failed";
}

std::string block_names(const std::vector<std::uint64_t>& indexes) {
    constexpr std::size_t kShown = 12;
    std::string text;
    for (std::size_t i = 0; i < indexes.size() && i < kShown; ++i)
        text += fmt::format("{}memory{}", i == 0 ? "" : ", ", indexes[i]);
    if (indexes.size() > kShown) text += fmt::format(" and {} more", indexes.size() - kShown);
    return text;
}

BlockSpan whole_blocks(AddressRange range, Bytes block_size) {
    if (block_size.value == 0 || range.size == 0 || range.end() < range.start) return {};
    const std::uint64_t first =
        range.start / block_size.value + (range.start % block_size.value != 0 ? 1 : 0);
    const std::uint64_t last = range.end() / block_size.value;
    return last > first ? BlockSpan{first, last - first} : BlockSpan{first, 0};
}

}  // namespace memtide::agent

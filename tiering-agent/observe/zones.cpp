#include "tiering-agent/observe/zones.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace memtide::agent {
namespace {

struct Zone {
    int node = -1;
    std::uint64_t free = 0;
    std::uint64_t high = 0;
    std::uint64_t reserved = 0;
};

std::uint64_t number_in(std::string_view text) {
    std::uint64_t value = 0;
    const char* begin =
        std::find_if(text.data(), text.data() + text.size(), [](char c) { return c >= '0' && c <= '9'; });
    std::from_chars(begin, text.data() + text.size(), value);
    return value;
}

// "(0, 1923, 1923, 7800)": by the kind of memory that is asked for; the last is ZONE_DEVICE or ZONE_MOVABLE.
std::uint64_t largest_in(std::string_view text) {
    std::uint64_t largest = 0;
    while (!text.empty()) {
        largest = std::max(largest, number_in(text));
        const auto comma = text.find(',');
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    return largest;
}

void add(const Zone& zone, UsablePages& usable) {
    if (zone.node < 0) return;
    const std::uint64_t kept = zone.high + zone.reserved;
    usable[zone.node] += zone.free - std::min(zone.free, kept);
}

}  // namespace

UsablePages parse_zones(std::string_view zoneinfo) {
    UsablePages usable;
    Zone zone;
    while (!zoneinfo.empty()) {
        const auto end = std::min(zoneinfo.find('\n'), zoneinfo.size());
        std::string_view line = zoneinfo.substr(0, end);
        zoneinfo.remove_prefix(std::min(end + 1, zoneinfo.size()));
        if (line.starts_with("Node ")) {  // "Node 0, zone    DMA32"
            add(zone, usable);
            zone = {.node = static_cast<int>(std::min<std::uint64_t>(number_in(line.substr(5)), 1 << 16))};
            continue;
        }
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        if (line.starts_with("pages free"))
            zone.free = number_in(line);
        else if (line.starts_with("high ") && zone.high == 0)  // those of the CPUs' lists come later
            zone.high = number_in(line);
        else if (line.starts_with("protection:"))
            zone.reserved = largest_in(line);
    }
    add(zone, usable);
    return usable;
}

Result<UsablePages> read_usable_pages(const Files& files) {
    const auto text = files.read("proc/zoneinfo");
    if (!text) return std::unexpected(text.error());
    return parse_zones(*text);
}

}  // namespace memtide::agent

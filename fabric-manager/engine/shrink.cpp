#include "fabric-manager/engine/shrink.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

namespace memtide::fm {

namespace {

struct Region {
    std::uint32_t number = 0;
    Bytes size;
    Bytes used;  // of it, by the host
};
using Regions = std::vector<Region>;

Regions lasting_regions(const Composition& c) {
    std::map<std::uint32_t, Region> regions;
    for (const Part& part : c.parts) {
        if (!is_lasting(part)) continue;
        Region& region = regions[part.region];
        region.number = part.region;
        region.size += part.size;
        if (!is_new(part)) region.used += part.size;
    }
    Regions result;
    for (const auto& [number, region] : regions) result.push_back(region);
    return result;
}

// Subsets as bits: there are at most kMostParts regions.
Bytes sum_of(const Regions& regions, unsigned subset, Bytes Region::* what) {
    Bytes sum;
    for (std::size_t i = 0; i < regions.size(); ++i)
        if ((subset >> i & 1) != 0) sum += regions[i].*what;
    return sum;
}
Bytes size_of(const Regions& regions, unsigned subset) { return sum_of(regions, subset, &Region::size); }

}  // namespace

Shrink choose_shrink(const Composition& c, Bytes less) {
    const Regions regions = lasting_regions(c);
    std::optional<unsigned> best;
    const auto key = [&](unsigned subset) {
        return std::tuple(size_of(regions, subset).value, sum_of(regions, subset, &Region::used).value,
                          std::popcount(subset));
    };
    for (unsigned subset = 1; subset < 1U << regions.size(); ++subset)
        if (size_of(regions, subset) >= less && (!best || key(subset) < key(*best))) best = subset;
    Shrink result;
    if (!best) return result;
    for (std::size_t i = 0; i < regions.size(); ++i)
        if ((*best >> i & 1) != 0) result.regions.insert(regions[i].number);
    result.excess = size_of(regions, *best) - less;
    return result;
}

std::vector<std::string> sizes_below(const Composition& c) {
    const Regions regions = lasting_regions(c);
    std::set<std::uint64_t, std::greater<>> sizes;
    for (unsigned subset = 1; subset + 1 < 1U << regions.size(); ++subset)
        sizes.insert(size_of(regions, subset).value);
    std::vector<std::string> result;
    for (const std::uint64_t size : sizes) result.push_back(format_bytes(Bytes{size}));
    if (result.empty()) result.emplace_back("none");
    return result;
}

}  // namespace memtide::fm

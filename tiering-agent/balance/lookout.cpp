#include "tiering-agent/balance/lookout.h"

#include <algorithm>
#include <utility>

namespace memtide::agent {

double slow_touches(const HeatMap& heat, const Glance& glance) {
    if (glance.windows == 0) return 0;
    RegionCursor cursor(glance.regions);
    double touches = 0;
    heat.for_each([&](const HeatMap::Unit& unit) {
        if (unit.heat.tier() == 0) return;
        const DamonRegion* const region = cursor.find(unit.page + unit.pages / 2);
        if (region != nullptr) touches += double(unit.pages) * region->accesses;
    });
    return touches / glance.windows;
}

bool Lookout::is_time(Sentinel& sentinel, const std::vector<const Watch*>& watches, const Glances& how) {
    std::vector<const Watch*> largest = watches;
    std::ranges::sort(largest, std::ranges::greater{}, &Watch::present_pages);
    largest.resize(std::min(largest.size(), kMost));
    double pages = 0;
    for (const Watch* const watch : largest) pages += double(watch->present_pages());
    std::erase_if(largest, [&](const Watch* watch) {
        const auto budget = std::chrono::duration_cast<std::chrono::microseconds>(
            how.budget * (double(watch->present_pages()) / std::max(pages, 1.0)));
        return !sentinel.glance(watch->process().pid,
                                watch->with_shape({.length = how.window, .budget = budget}));
    });
    if (largest.empty()) return false;
    how.sleep(sentinel.glance_duration());
    double touches = 0;
    for (const Watch* const watch : largest)
        if (const auto glance = sentinel.end_glance(watch->process().pid))
            touches += slow_touches(watch->heat(), *glance);
    if (std::exchange(window_, how.window) != how.window) usual_.forget();
    return usual_.is_surprising(touches, how.matters);
}

}  // namespace memtide::agent

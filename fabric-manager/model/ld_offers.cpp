#include "fabric-manager/model/ld_offers.h"

#include <algorithm>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

void add_ready(std::vector<LdOffers::Ready>& ready, const LogicalDevice& ld) {
    const auto at = std::ranges::lower_bound(ready, ld.size, {}, &LdOffers::Ready::size);
    if (at == ready.end() || at->size != ld.size)
        ready.insert(at, {ld.size, ld.clean});
    else
        at->clean = at->clean || ld.clean;
}

}  // namespace

LdOffers offers_of(const Device& device, const Head* through) {
    LdOffers offers;
    for (const LogicalDevice& ld : device.lds) {
        if (!is_reached(ld, through)) continue;
        if (ld.use == LdUse::kUnallocated) offers.has_slot = true;
        if (ld.use != LdUse::kFree) continue;
        offers.all += ld.size;
        add_ready(offers.ready, ld);
    }
    if (!is_divided(device.kind)) return offers;
    offers.spare = unallocated(device);
    if (offers.has_slot || !offers.ready.empty()) offers.all += offers.spare;
    offers.refused = refused_carve(device, through);
    return offers;
}

}  // namespace memtide::fm

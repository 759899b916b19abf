#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "fabric-manager/model/composition.h"

namespace memtide::fm {

// Which regions a composition gives back to become smaller. LDs that a host uses cannot shrink, so that whole
// regions go; what goes too much has to come back as another part.
struct Shrink {
    std::set<std::uint32_t> regions;
    Bytes excess;
};

// The choice with the least excess, then with the least that a host uses already, then with the fewest
// regions. `less` is at most what the composition has.
// Pure.
Shrink choose_shrink(const Composition& composition, Bytes less);

// Smaller sizes that need no other memory in exchange, for people; largest first.
std::vector<std::string> sizes_below(const Composition& composition);

}  // namespace memtide::fm

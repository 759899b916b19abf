#include "fabric-manager/placement/ld_fit.h"

#include <algorithm>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

bool is_usable(const LogicalDevice& ld) { return ld.use == LdUse::kFree || ld.use == LdUse::kUnallocated; }

struct Fit {
    LdFit fit;
    const LogicalDevice* ld = nullptr;
};

std::optional<Fit> best_fit(const Device& device, Bytes size) {
    const LogicalDevice* exact = nullptr;
    const LogicalDevice* slot = nullptr;
    const LogicalDevice* larger = nullptr;  // the smallest free one that is
    const LogicalDevice* first = nullptr;   // usable
    Bytes free;
    for (const LogicalDevice& ld : device.lds) {
        if (!is_usable(ld)) continue;
        if (first == nullptr) first = &ld;
        if (ld.use == LdUse::kUnallocated) {
            if (slot == nullptr) slot = &ld;
        } else if (ld.size == size) {
            if (ld.clean) return Fit{LdFit::kClean, &ld};
            if (exact == nullptr) exact = &ld;
        }
        if (ld.use == LdUse::kFree) free += ld.size;
        if (ld.size > size && (larger == nullptr || ld.size < larger->size)) larger = &ld;
    }
    if (exact != nullptr) return Fit{LdFit::kExact, exact};
    if (device.kind != DeviceKind::kMld || !size.is_multiple_of(device.granularity)) return std::nullopt;
    const Bytes rest = unallocated(device);
    if (slot != nullptr && rest >= size) return Fit{LdFit::kInSlot, slot};
    if (first == nullptr || rest + free < size) return std::nullopt;
    // The LD that is grown or shrunk to the size.
    return Fit{LdFit::kCarved, larger != nullptr ? larger : first};
}

// Its own memory, what no LD has, and then what others have free.
Carve carve_for(const Device& device, const LogicalDevice& target, Bytes size) {
    Carve carve{{{target.id, target.size}}, {{target.id, size}}, false};
    const Bytes at_hand = unallocated(device) + target.size;
    Bytes missing = size > at_hand ? size - at_hand : Bytes{};
    for (const LogicalDevice& ld : device.lds) {
        if (missing.value == 0) break;
        if (ld.use != LdUse::kFree || ld.id == target.id) continue;
        const Bytes taken = std::min(ld.size, missing);
        carve.before.push_back({ld.id, ld.size});
        carve.after.push_back({ld.id, ld.size - taken});
        missing -= taken;
    }
    return carve;
}

}  // namespace

std::optional<LdFit> rank_ld(const Device& device, Bytes size) {
    const std::optional<Fit> found = best_fit(device, size);
    if (!found) return std::nullopt;
    return found->fit;
}

std::optional<PartPlacement> fit_ld(const Device& device, Bytes size) {
    const std::optional<Fit> found = best_fit(device, size);
    if (!found) return std::nullopt;
    const LogicalDevice& ld = *found->ld;
    PartPlacement part{{device.id, ld.id}, ld.serial, device.port, {}, size, std::nullopt};
    if (found->fit == LdFit::kInSlot || found->fit == LdFit::kCarved)
        part.carve = carve_for(device, ld, size);
    return part;
}

}  // namespace memtide::fm

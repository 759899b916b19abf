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

std::optional<Fit> best_fit(const Device& device, Bytes size, const Head* through) {
    const LogicalDevice* exact = nullptr;
    const LogicalDevice* slot = nullptr;
    const LogicalDevice* larger = nullptr;  // the smallest free one that is
    const LogicalDevice* first = nullptr;   // usable
    Bytes free;
    for (const LogicalDevice& ld : device.lds) {
        if (!is_usable(ld) || !is_reached(ld, through)) continue;
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
    if (const auto refused = refused_carve(device, through); refused && size >= *refused) return std::nullopt;
    const Bytes rest = unallocated(device);
    if (slot != nullptr && rest >= size) return Fit{LdFit::kInSlot, slot};
    if (first == nullptr || rest + free < size) return std::nullopt;
    // The LD that is grown or shrunk to the size.
    return Fit{LdFit::kCarved, larger != nullptr ? larger : first};
}

// Its own memory, what no LD has, and then what others have free.
Carve carve_for(const Device& device, const LogicalDevice& target, Bytes size, const Head* through) {
    Carve carve{{{target.id, target.size}}, {{target.id, size}}, false};
    const Bytes at_hand = unallocated(device) + target.size;
    Bytes missing = size > at_hand ? size - at_hand : Bytes{};
    for (const LogicalDevice& ld : device.lds) {
        if (missing.value == 0) break;
        if (ld.use != LdUse::kFree || ld.id == target.id || !is_reached(ld, through)) continue;
        const Bytes taken = std::min(ld.size, missing);
        carve.before.push_back({ld.id, ld.size});
        carve.after.push_back({ld.id, ld.size - taken});
        missing -= taken;
    }
    return carve;
}

}  // namespace

std::optional<LdFit> rank_ld(const Device& device, Bytes size, const Head* through) {
    const std::optional<Fit> found = best_fit(device, size, through);
    if (!found) return std::nullopt;
    return found->fit;
}

std::optional<PartPlacement> fit_ld(const Device& device, Bytes size, const Head* through) {
    const std::optional<Fit> found = best_fit(device, size, through);
    if (!found) return std::nullopt;
    const LogicalDevice& ld = *found->ld;
    PartPlacement part{
        {device.id, ld.id}, ld.serial, through == nullptr ? device.port : through->port, {}, size,
        std::nullopt};
    if (found->fit == LdFit::kInSlot || found->fit == LdFit::kCarved)
        part.carve = carve_for(device, ld, size, through);
    return part;
}

Bytes largest_fit(const Device& device, Bytes at_most, const Head* through) {
    Bytes best;
    if (device.kind == DeviceKind::kMld) {
        best = std::min(at_most, largest_carve(device, through));
        best = device.granularity * (best / device.granularity);
    }
    for (const LogicalDevice& ld : device.lds)
        if (ld.use == LdUse::kFree && is_reached(ld, through) && ld.size <= at_most)
            best = std::max(best, ld.size);
    return best;
}

std::optional<Carve> widen(const Device& device, const Part& part) {
    const auto own = std::ranges::find(device.lds, part.memory.ld, &LogicalDevice::id);
    if (!part.carve || own == device.lds.end()) return std::nullopt;
    Carve wider = *part.carve;
    bool is_wider = false;
    for (LdSize& one : wider.after) {
        if (one.ld == own->id || one.size.value == 0) continue;
        one.size = {};
        is_wider = true;
    }
    for (const LogicalDevice& ld : device.lds) {
        if (ld.use != LdUse::kFree || ld.owner || ld.head != own->head) continue;
        wider.before.push_back({ld.id, ld.size});
        wider.after.push_back({ld.id, Bytes{}});
        is_wider = true;
    }
    return is_wider ? std::optional(std::move(wider)) : std::nullopt;
}

}  // namespace memtide::fm

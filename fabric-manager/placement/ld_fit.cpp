#include "fabric-manager/placement/ld_fit.h"

#include <algorithm>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

bool is_usable(const LogicalDevice& ld) { return ld.use == LdUse::kFree || ld.use == LdUse::kUnallocated; }

// The LD that becomes the part; nullptr when none can.
const LogicalDevice* pick(const Device& device, LdFit fit, Bytes size, const Head* through) {
    const LogicalDevice* first = nullptr;   // usable
    const LogicalDevice* larger = nullptr;  // the smallest free one that is
    for (const LogicalDevice& ld : device.lds) {
        if (!is_usable(ld) || !is_reached(ld, through)) continue;
        const bool has_size = ld.use == LdUse::kFree && ld.size == size;
        if (fit == LdFit::kClean && has_size && ld.clean) return &ld;
        if (fit == LdFit::kExact && has_size) return &ld;
        if (fit == LdFit::kInSlot && ld.use == LdUse::kUnallocated) return &ld;
        if (first == nullptr) first = &ld;
        if (ld.size > size && (larger == nullptr || ld.size < larger->size)) larger = &ld;
    }
    if (fit != LdFit::kCarved) return nullptr;
    return larger != nullptr ? larger : first;
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

std::optional<LdFit> rank_ld(const Device& device, const LdOffers& offers, Bytes size) {
    const auto ready = std::ranges::lower_bound(offers.ready, size, {}, &LdOffers::Ready::size);
    if (ready != offers.ready.end() && ready->size == size)
        return ready->clean ? LdFit::kClean : LdFit::kExact;
    if (!is_divided(device.kind) || !size.is_multiple_of(device.granularity)) return std::nullopt;
    if (offers.refused && size >= *offers.refused) return std::nullopt;
    if (offers.has_slot && offers.spare >= size) return LdFit::kInSlot;
    return offers.all >= size ? std::optional(LdFit::kCarved) : std::nullopt;
}

std::optional<PartPlacement> fit_ld(const Device& device, const LdOffers& offers, Bytes size,
                                    const Head* through) {
    const std::optional<LdFit> fit = rank_ld(device, offers, size);
    const LogicalDevice* found = fit ? pick(device, *fit, size, through) : nullptr;
    if (found == nullptr) return std::nullopt;
    const LogicalDevice& ld = *found;
    PartPlacement part{
        {device.id, ld.id}, ld.serial, through == nullptr ? device.port : through->port, {}, size,
        std::nullopt};
    if (*fit == LdFit::kInSlot || *fit == LdFit::kCarved) part.carve = carve_for(device, ld, size, through);
    return part;
}

Bytes largest_fit(const Device& device, Bytes at_most, const Head* through) {
    Bytes best;
    if (is_divided(device.kind)) {
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

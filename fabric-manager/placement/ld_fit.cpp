#include "fabric-manager/placement/ld_fit.h"

#include <algorithm>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

bool is_usable(const LogicalDevice& ld) { return ld.use == LdUse::kFree || ld.use == LdUse::kUnallocated; }

FittedLd fitted(LdFit fit, const Device& device, const LogicalDevice& ld, Bytes size,
                std::optional<Carve> carve) {
    return {fit, {{device.id, ld.id}, ld.serial, device.port, {}, size, std::move(carve)}};
}

std::optional<FittedLd> exact(const Device& device, Bytes size, const Head* through) {
    const LogicalDevice* best = nullptr;
    for (const LogicalDevice& ld : device.lds) {
        if (ld.use != LdUse::kFree || ld.size != size || !is_reached(ld, through)) continue;
        if (best == nullptr || (ld.clean && !best->clean)) best = &ld;
    }
    if (best == nullptr) return std::nullopt;
    return fitted(best->clean ? LdFit::kClean : LdFit::kExact, device, *best, size, std::nullopt);
}

std::optional<FittedLd> in_slot(const Device& device, Bytes size, const Head* through) {
    if (unallocated(device) < size) return std::nullopt;
    const auto slot = std::ranges::find_if(device.lds, [&](const LogicalDevice& ld) {
        return ld.use == LdUse::kUnallocated && is_reached(ld, through);
    });
    if (slot == device.lds.end()) return std::nullopt;
    return fitted(LdFit::kInSlot, device, *slot, size,
                  Carve{{{slot->id, Bytes{}}}, {{slot->id, size}}, false});
}

// The LD that is grown or shrunk to the size: the smallest free one above it, else the first usable one.
const LogicalDevice* recarve_target(const Device& device, Bytes size, const Head* through) {
    const LogicalDevice* larger = nullptr;
    const LogicalDevice* first = nullptr;
    for (const LogicalDevice& ld : device.lds) {
        if (!is_usable(ld) || !is_reached(ld, through)) continue;
        if (first == nullptr) first = &ld;
        if (ld.size > size && (larger == nullptr || ld.size < larger->size)) larger = &ld;
    }
    return larger != nullptr ? larger : first;
}

std::optional<FittedLd> carved(const Device& device, Bytes size, const Head* through) {
    if (largest_free(device, through) < size) return std::nullopt;
    const LogicalDevice* target = recarve_target(device, size, through);
    if (target == nullptr) return std::nullopt;
    Carve carve{{{target->id, target->size}}, {{target->id, size}}, false};
    const Bytes at_hand = unallocated(device) + target->size;
    Bytes missing = size > at_hand ? size - at_hand : Bytes{};
    for (const LogicalDevice& ld : device.lds) {
        if (missing.value == 0) break;
        if (ld.use != LdUse::kFree || ld.id == target->id || !is_reached(ld, through)) continue;
        const Bytes taken = std::min(ld.size, missing);
        carve.before.push_back({ld.id, ld.size});
        carve.after.push_back({ld.id, ld.size - taken});
        missing -= taken;
    }
    if (missing.value != 0) return std::nullopt;
    return fitted(LdFit::kCarved, device, *target, size, std::move(carve));
}

}  // namespace

std::optional<FittedLd> fit_ld(const Device& device, Bytes size, const Head* through) {
    if (std::optional<FittedLd> found = exact(device, size, through)) return found;
    if (device.kind != DeviceKind::kMld || !size.is_multiple_of(device.granularity)) return std::nullopt;
    if (std::optional<FittedLd> found = in_slot(device, size, through)) return found;
    return carved(device, size, through);
}

}  // namespace memtide::fm

// What devices refuse to carve. An LD's memory is in one piece, and nothing tells where it is: that a size is
// too large for the pieces that are free shows only when the device refuses it.
#include <algorithm>
#include <iterator>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

constexpr std::size_t kMostRemembered = 16;  // of one device: the newest

// Memory that a carve through the head may take.
bool is_to_be_had(const LogicalDevice& ld, const std::optional<std::uint8_t>& head) {
    return ld.use == LdUse::kFree && ld.head == head;
}

// With the memory of an LD that it did not have then the device may well do it.
bool still_counts(const RefusedCarve& refused, const Device& device) {
    return std::ranges::all_of(device.lds, [&](const LogicalDevice& ld) {
        return !is_to_be_had(ld, refused.head) || std::ranges::find(refused.lds, ld.id) != refused.lds.end();
    });
}

}  // namespace

void Inventory::note_refused_carve(const LdAddress& address, Bytes size) {
    const LogicalDevice* own = find_ld(address);
    if (own == nullptr) return;
    Device& device = devices_[address.device];
    RefusedCarve refused{own->head, size, {}};
    for (const LogicalDevice& ld : device.lds)
        if (ld.id == own->id || is_to_be_had(ld, own->head)) refused.lds.push_back(ld.id);
    std::vector<RefusedCarve>& all = device.refused_carves;
    std::erase_if(all, [&](const RefusedCarve& one) {
        return one.head == refused.head && one.size >= size && std::ranges::includes(refused.lds, one.lds);
    });
    if (all.size() == kMostRemembered) all.erase(all.begin());
    all.push_back(std::move(refused));
}

std::optional<Bytes> refused_carve(const Device& device, const Head* through) {
    const std::optional<std::uint8_t> head =
        through == nullptr ? std::nullopt : std::optional(through->number);
    std::optional<Bytes> smallest;
    for (const RefusedCarve& one : device.refused_carves)
        if (one.head == head && (!smallest || one.size < *smallest) && still_counts(one, device))
            smallest = one.size;
    return smallest;
}

}  // namespace memtide::fm

// Sums over the inventory and the checks that they add up.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

// What the LDs of carves that are not done have together: now or then, whichever is more. One LD gives what
// another one gets, so that neither sum of the larger sizes would be right.
Bytes held_by_carves(const Device& device) {
    Bytes total;
    for (auto ld = device.lds.begin(); ld != device.lds.end(); ++ld) {
        if (!ld->planned) continue;
        const auto same = [&](const LogicalDevice& other) {
            return other.planned && other.owner == ld->owner;
        };
        if (std::any_of(device.lds.begin(), ld, same)) continue;
        Bytes now;
        Bytes then;
        for (auto one = ld; one != device.lds.end(); ++one) {
            if (!same(*one)) continue;
            now += one->size;
            then += *one->planned;
        }
        total += std::max(now, then);
    }
    return total;
}

}  // namespace

Bytes unallocated(const Device& device) {
    Bytes used = held_by_carves(device);
    for (const LogicalDevice& ld : device.lds)
        if (!ld.planned) used += ld.size;
    return used < device.size ? device.size - used : Bytes{};
}

namespace {

Bytes carve_of(const Device& device, const LdOffers& offers) {
    if (!is_divided(device.kind)) return {};
    const std::optional<Bytes>& refused = offers.refused;
    return refused && offers.all >= *refused ? *refused - std::min(*refused, device.granularity) : offers.all;
}

}  // namespace

Bytes largest_free(const Device& device, const Head* through) {
    if (through == nullptr && device.is_multi_headed()) {
        Bytes best;
        for (const Head& head : device.heads) best = std::max(best, largest_free(device, &head));
        return best;
    }
    const LdOffers offers = offers_of(device, through);
    const Bytes largest_ld = offers.ready.empty() ? Bytes{} : offers.ready.back().size;
    return std::max(largest_ld, carve_of(device, offers));
}

Bytes largest_carve(const Device& device, const Head* through) {
    return carve_of(device, offers_of(device, through));
}

namespace {

// What can be had of the device now: in one piece, and in all.
struct Offer {
    Bytes largest;
    Bytes all;
};
Offer offer_of(const Device& device, const std::map<SwitchId, Switch>& switches) {
    const auto is_up = [&](const SwitchId& id) {
        const auto found = switches.find(id);
        return found != switches.end() && found->second.up;
    };
    Offer offer;
    if (!device.is_multi_headed()) {
        if (is_up(device.switch_id)) offer = {largest_free(device), offers_of(device).all};
        return offer;
    }
    for (const Head& head : device.heads) {
        if (!is_up(head.switch_id)) continue;
        const Bytes of_head = offers_of(device, &head).all;
        if (of_head.value == 0) continue;
        offer.largest = std::max(offer.largest, largest_free(device, &head));
        // What no LD has is there once, for whichever head takes it first.
        const Bytes spare = device.kind == DeviceKind::kSld ? Bytes{} : unallocated(device);
        offer.all = std::max(offer.all, spare) + (of_head - spare);
    }
    return offer;
}

PoolDevice sum(const Device& device, Offer offer) {
    PoolDevice result;
    result.id = device.id;
    result.kind = device.kind;
    result.capacity = device.size;
    result.composed = held_by_carves(device);
    for (const LogicalDevice& ld : device.lds) {
        if (ld.planned) continue;
        switch (ld.use) {
            case LdUse::kUnallocated:
            case LdUse::kFree:
                break;
            case LdUse::kReserved:
            case LdUse::kBound:
                result.composed += ld.size;
                break;
            case LdUse::kQuarantined:
                result.quarantined += ld.size;
                break;
            case LdUse::kForeign:
                result.foreign += ld.size;
                break;
        }
    }
    const Bytes used = result.composed + result.quarantined + result.foreign;
    // A device that answers nonsense (more allocated than it has) must not make free memory out of it.
    result.capacity = std::max(result.capacity, used);
    result.free = result.capacity - used;
    result.largest_free = offer.largest;
    result.stranded = result.free - std::min(result.free, offer.all);
    return result;
}

}  // namespace

const PoolDevice& Inventory::sums(const Device& device) const { return known_sums(device).device; }

const LdOffers& Inventory::offers(const Device& device, const Head* through) const {
    const std::vector<LdOffers>& offers = known_sums(device).offers;
    return through == nullptr ? offers.front()
                              : offers[static_cast<std::size_t>(through - device.heads.data())];
}

const Inventory::Sums& Inventory::known_sums(const Device& device) const {
    Sums& known = sums_[&device];
    if (changed_.erase(&device) == 0) return known;
    totals_.capacity -= known.counted.capacity;
    totals_.free -= known.counted.free;
    known.device = sum(device, offer_of(device, switches_));
    known.counted = device.present ? Totals{known.device.capacity, known.device.free} : Totals{};
    totals_.capacity += known.counted.capacity;
    totals_.free += known.counted.free;
    known.offers.clear();
    for (const Head& head : device.heads) known.offers.push_back(offers_of(device, &head));
    if (device.heads.empty()) known.offers.push_back(offers_of(device));
    return known;
}

Inventory::Totals Inventory::totals() const {
    while (!changed_.empty()) (void)sums(**changed_.begin());
    return totals_;
}

Pool Inventory::pool() const {
    Pool pool;
    for (const auto& [id, device] : devices_) {
        if (!device.present) continue;
        const PoolDevice& one = sums(device);
        pool.capacity += one.capacity;
        pool.free += one.free;
        pool.composed += one.composed;
        pool.quarantined += one.quarantined;
        pool.foreign += one.foreign;
        pool.stranded += one.stranded;
        pool.largest_free = std::max(pool.largest_free, one.largest_free);
        pool.devices.push_back(one);
    }
    return pool;
}

namespace {

void check_devices(const Inventory& inventory, std::vector<std::string>& wrong) {
    for (const auto& [id, device] : inventory.devices()) {
        Bytes used;
        for (const LogicalDevice& ld : device.lds) {
            used += ld.size;
            if (!ld.dynamic && !ld.size.is_multiple_of(device.granularity))
                wrong.push_back(
                    fmt::format("LD {} of {} is no multiple of its granularity", ld.id.value, id.value));
            if (ld.clean && ld.bound_at)
                wrong.push_back(fmt::format("LD {} of {} is bound and called clean", ld.id.value, id.value));
            if (!ld.bound_at) continue;
            const Vppb* at = inventory.vppb(*ld.bound_at);
            if (at == nullptr || at->status == BindingStatus::kUnbound)
                wrong.push_back(fmt::format("LD {} of {} is bound where no vPPB is", ld.id.value, id.value));
            else if (!inventory.shows(ld.bound_at->switch_id, at->port, {id, ld.id}))
                wrong.push_back(
                    fmt::format("LD {} of {} is bound where it cannot be reached", ld.id.value, id.value));
            else if (at->owner != ld.owner)
                wrong.push_back(
                    fmt::format("LD {} of {} and its vPPB have different owners", ld.id.value, id.value));
        }
        if (used > device.size) wrong.push_back(fmt::format("the LDs of {} are larger than it is", id.value));
        const PoolDevice now = sum(device, offer_of(device, inventory.switches()));
        const PoolDevice& kept = inventory.sums(device);
        const Head* head = device.heads.empty() ? nullptr : device.heads.data();
        if (inventory.offers(device, head) != offers_of(device, head) || now.free != kept.free ||
            now.composed != kept.composed || now.largest_free != kept.largest_free)
            wrong.push_back(fmt::format("{} has other sums than are kept of it", id.value));
    }
    const Pool pool = inventory.pool();
    if (pool.free + pool.composed + pool.quarantined + pool.foreign != pool.capacity)
        wrong.push_back("the capacity does not add up");
    if (const Inventory::Totals totals = inventory.totals();
        totals.free != pool.free || totals.capacity != pool.capacity)
        wrong.push_back("the totals are not those of the devices");
}

}  // namespace

namespace {

// The parts of one composition against the inventory and against all parts seen before.
struct Books {
    std::set<LdAddress> lds;
    std::set<VppbAddress> vppbs;
    std::set<PartId> live;

    void check(const Inventory& inventory, const Composition& c, const Part& part,
               std::vector<std::string>& wrong) {
        const PartId id{c.id, part.number};
        live.insert(id);
        if (!lds.insert(part.memory).second)
            wrong.push_back(fmt::format("LD {} of {} has two compositions", part.memory.ld.value,
                                        part.memory.device.value));
        if (!vppbs.insert(part.where).second)
            wrong.push_back(
                fmt::format("vPPB {} of VCS {} has two compositions", part.where.vppb, part.where.vcs));
        const LogicalDevice* ld = inventory.ld(part.memory);
        if (ld != nullptr && ld->owner != id)
            wrong.push_back(fmt::format("the LD of part {} of {} is not its own", part.number, c.id.value));
        if (ld != nullptr && ld->bound_at && *ld->bound_at != part.where)
            wrong.push_back(
                fmt::format("the LD of part {} of {} is bound elsewhere", part.number, c.id.value));
        const Vppb* vppb = inventory.vppb(part.where);
        if (vppb != nullptr && vppb->owner != id)
            wrong.push_back(fmt::format("the vPPB of part {} of {} is not its own", part.number, c.id.value));
        const std::vector<HostAttachment>& attach = inventory.host(c.host)->attach;
        if (std::ranges::find(attach, HostAttachment{part.where.switch_id, part.where.vcs}) == attach.end())
            wrong.push_back(fmt::format("part {} of {} is where its host is not", part.number, c.id.value));
    }
};

}  // namespace

std::vector<std::string> violations(const Inventory& inventory,
                                    const std::vector<Composition>& compositions) {
    std::vector<std::string> wrong;
    check_devices(inventory, wrong);
    Books books;
    for (const Composition& c : compositions)
        for (const Part& part : c.parts)
            if (!is_end(part.state)) books.check(inventory, c, part, wrong);
    for (const auto& [id, device] : inventory.devices())
        for (const LogicalDevice& ld : device.lds)
            if (ld.owner && !books.live.contains(*ld.owner))
                wrong.push_back(fmt::format("LD {} of {} is claimed by {}, which has ended", ld.id.value,
                                            id.value, ld.owner->composition.value));
    return wrong;
}

}  // namespace memtide::fm

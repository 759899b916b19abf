// Sums over the inventory and the checks that they add up.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

// What the LDs of carves that are not done have together: now or then, whichever is more. One LD gives what another
// one gets, so that neither sum of the larger sizes would be right.
Bytes held_by_carves(const Device& device) {
    Bytes total;
    for (auto ld = device.lds.begin(); ld != device.lds.end(); ++ld) {
        if (!ld->planned) continue;
        const auto same = [&](const LogicalDevice& other) { return other.planned && other.owner == ld->owner; };
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

Bytes largest_free(const Device& device) {
    Bytes free;
    bool has_ld = false;
    for (const LogicalDevice& ld : device.lds) {
        if (ld.use != LdUse::kFree && ld.use != LdUse::kUnallocated) continue;
        has_ld = true;
        free += ld.size;
    }
    if (!has_ld) return {};
    return device.kind == DeviceKind::kSld ? free : free + unallocated(device);
}

namespace {

PoolDevice sum(const Device& device, bool reachable) {
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
    result.largest_free = reachable ? largest_free(device) : Bytes{};
    result.stranded = result.free - std::min(result.free, result.largest_free);
    return result;
}

}  // namespace

const PoolDevice& Inventory::sums(const Device& device) const {
    const auto found = sums_.find(device.id);
    if (found != sums_.end()) return found->second;
    const Switch* owner = find_switch(device.switch_id);
    return sums_[device.id] = sum(device, owner != nullptr && owner->up);
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
            if (!ld.size.is_multiple_of(device.granularity))
                wrong.push_back(
                    fmt::format("LD {} of {} is no multiple of its granularity", ld.id.value, id.value));
            if (ld.clean && ld.bound_at)
                wrong.push_back(fmt::format("LD {} of {} is bound and called clean", ld.id.value, id.value));
            if (!ld.bound_at) continue;
            const Vppb* at = inventory.vppb(*ld.bound_at);
            if (at == nullptr || at->status == BindingStatus::kUnbound)
                wrong.push_back(fmt::format("LD {} of {} is bound where no vPPB is", ld.id.value, id.value));
            else if (at->owner != ld.owner)
                wrong.push_back(
                    fmt::format("LD {} of {} and its vPPB have different owners", ld.id.value, id.value));
        }
        if (used > device.size) wrong.push_back(fmt::format("the LDs of {} are larger than it is", id.value));
    }
    const Pool pool = inventory.pool();
    if (pool.free + pool.composed + pool.quarantined + pool.foreign != pool.capacity)
        wrong.push_back("the capacity does not add up");
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

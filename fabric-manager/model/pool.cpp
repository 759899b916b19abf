// Sums over the inventory and the checks that they add up.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

Bytes unallocated(const Device& device) {
    Bytes used;
    for (const LogicalDevice& ld : device.lds) used += std::max(ld.size, ld.planned.value_or(ld.size));
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
    for (const LogicalDevice& ld : device.lds) {
        const Bytes size = std::max(ld.size, ld.planned.value_or(ld.size));
        switch (ld.use) {
            case LdUse::kUnallocated:
            case LdUse::kFree:
                break;
            case LdUse::kReserved:
            case LdUse::kBound:
                result.composed += size;
                break;
            case LdUse::kQuarantined:
                result.quarantined += size;
                break;
            case LdUse::kForeign:
                result.foreign += size;
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

Pool Inventory::pool() const {
    Pool pool;
    for (const auto& [id, device] : devices_) {
        const Switch* owner = find_switch(device.switch_id);
        if (!device.present) continue;
        const PoolDevice one = sum(device, owner != nullptr && owner->up);
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
            else if (at->composition != ld.composition)
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

std::vector<std::string> violations(const Inventory& inventory,
                                    const std::vector<Composition>& compositions) {
    std::vector<std::string> wrong;
    check_devices(inventory, wrong);
    std::set<LdAddress> lds;
    std::set<VppbAddress> vppbs;
    std::set<CompositionId> live;
    for (const Composition& c : compositions) {
        if (is_end(c.state)) continue;
        live.insert(c.id);
        if (!lds.insert(c.memory).second)
            wrong.push_back(
                fmt::format("LD {} of {} has two compositions", c.memory.ld.value, c.memory.device.value));
        if (!vppbs.insert(c.where).second)
            wrong.push_back(fmt::format("vPPB {} of VCS {} has two compositions", c.where.vppb, c.where.vcs));
        const LogicalDevice* ld = inventory.ld(c.memory);
        if (ld != nullptr && ld->composition != c.id)
            wrong.push_back(fmt::format("the LD of {} is not its own", c.id.value));
        if (ld != nullptr && ld->bound_at && *ld->bound_at != c.where)
            wrong.push_back(fmt::format("the LD of {} is bound elsewhere", c.id.value));
        const Vppb* vppb = inventory.vppb(c.where);
        if (vppb != nullptr && vppb->composition != c.id)
            wrong.push_back(fmt::format("the vPPB of {} is not its own", c.id.value));
    }
    for (const auto& [id, device] : inventory.devices())
        for (const LogicalDevice& ld : device.lds)
            if (ld.composition && !live.contains(*ld.composition))
                wrong.push_back(fmt::format("LD {} of {} is claimed by {}, which has ended", ld.id.value,
                                            id.value, ld.composition->value));
    return wrong;
}

}  // namespace memtide::fm

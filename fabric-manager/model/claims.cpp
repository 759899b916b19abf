// What was given to which part of a composition: LDs, vPPBs, and the LDs that a carve changes.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

Result<> Inventory::check_claim(const PartId& id, const Claim& claim) const {
    const auto taken = [&](const std::optional<PartId>& owner) { return owner && *owner != id; };
    const Vppb* bridge = vppb(claim.where);
    if (bridge != nullptr && taken(bridge->owner))
        return fail(
            ErrorCode::kConflict,
            fmt::format("vPPB {} of VCS {} of {} belongs to composition {}", claim.where.vppb,
                        claim.where.vcs, claim.where.switch_id.value, bridge->owner->composition.value));
    std::vector<LdId> lds{claim.memory.ld};
    for (const LdSize& planned : claim.planned) lds.push_back(planned.ld);
    for (const LdId one : lds) {
        const LogicalDevice* entry = ld({claim.memory.device, one});
        if (entry != nullptr && taken(entry->owner))
            return fail(ErrorCode::kConflict,
                        fmt::format("LD {} of {} belongs to composition {}", one.value,
                                    claim.memory.device.value, entry->owner->composition.value));
    }
    if (bridge != nullptr && ld(claim.memory) != nullptr) return {};
    return check_unseen(id, claim);
}

// What has not been seen yet can only be told apart by the other claims.
Result<> Inventory::check_unseen(const PartId& id, const Claim& claim) const {
    const auto taken = [&](const auto& claims, const auto& what) -> Result<> {
        const auto found = claims.find(what);
        if (found == claims.end() || found->second == id) return {};
        return fail(ErrorCode::kConflict,
                    fmt::format("composition {} has the same LD or vPPB", found->second.composition.value));
    };
    if (Result<> ok = taken(claims_at_, claim.where); !ok) return ok;
    return taken(claims_on_, claim.memory);
}

void Inventory::mark(const PartId& id, const Claim& claim) {
    if (LogicalDevice* own = find_ld(claim.memory)) own->owner = id;
    for (const LdSize& planned : claim.planned) {
        LogicalDevice* other = find_ld({claim.memory.device, planned.ld});
        if (other == nullptr) continue;
        other->owner = id;
        other->planned = planned.size;
        settle(*other);
    }
    if (LogicalDevice* own = find_ld(claim.memory)) settle(*own);
}

Result<> Inventory::claim(const Composition& composition, const Part& part) {
    const PartId id{composition.id, part.number};
    Claim claim = claim_for(composition, part);
    if (Result<> ok = check_claim(id, claim); !ok) return ok;
    release(id);
    if (Vppb* bridge = find_vppb(claim.where)) bridge->owner = id;
    claims_at_[claim.where] = id;
    claims_on_[claim.memory] = id;
    mark(id, enter(id, std::move(claim)));
    return {};
}

// What the LDs get is not known any more, so that they count as they are.
void Inventory::keep(const Composition& composition, const Part& part) {
    const PartId id{composition.id, part.number};
    release(id);
    const Claim& claim = enter(id, claim_for(composition, part));
    Vppb* bridge = find_vppb(claim.where);
    if (bridge != nullptr && !bridge->owner) bridge->owner = id;
    const auto take = [&](LdId one) {
        LogicalDevice* entry = find_ld({claim.memory.device, one});
        if (entry == nullptr || entry->owner) return;
        entry->owner = id;
        settle(*entry);
    };
    take(claim.memory.ld);
    for (const LdSize& planned : claim.planned) take(planned.ld);
    claims_at_.try_emplace(claim.where, id);
    claims_on_.try_emplace(claim.memory, id);
}

Inventory::Claim Inventory::claim_for(const Composition& composition, const Part& part) {
    Claim claim{part.memory, part.where, {}, part.size, composition.host, composition.tenant};
    if (part.carve && !part.carve->done) claim.planned = part.carve->after;
    return claim;
}

const Inventory::Claim& Inventory::enter(const PartId& id, Claim claim) {
    claims_for_[claim.host].insert(id);
    return claims_[id] = std::move(claim);
}

Result<> Inventory::claim(const Composition& composition) {
    std::vector<PartId> fresh;
    for (const Part& part : composition.parts) {
        if (is_end(part.state)) continue;
        const PartId id{composition.id, part.number};
        const bool had = claims_.contains(id);
        if (Result<> ok = claim(composition, part); !ok) {
            for (const PartId& one : fresh) release(one);
            return ok;
        }
        if (!had) fresh.push_back(id);
    }
    return {};
}

void Inventory::release(const PartId& id) {
    const auto found = claims_.find(id);
    if (found == claims_.end()) return;
    const Claim claim = std::move(found->second);
    claims_.erase(found);
    const auto drop_from = [&](auto& claims, const auto& key) {
        const auto known = claims.find(key);
        if (known != claims.end() && known->second == id) claims.erase(known);
    };
    drop_from(claims_at_, claim.where);
    drop_from(claims_on_, claim.memory);
    claims_for_[claim.host].erase(id);
    Vppb* bridge = find_vppb(claim.where);
    if (bridge != nullptr && bridge->owner == id) bridge->owner.reset();
    const auto drop = [&](LdId one) {
        LogicalDevice* entry = find_ld({claim.memory.device, one});
        if (entry == nullptr || entry->owner != id) return;
        entry->owner.reset();
        entry->planned.reset();
        settle(*entry);
    };
    drop(claim.memory.ld);
    for (const LdSize& planned : claim.planned) drop(planned.ld);
}

void Inventory::release(const CompositionId& id) {
    for (auto it = claims_.lower_bound(PartId{id, 0}); it != claims_.end() && it->first.composition == id;) {
        const PartId part = it->first;
        ++it;
        release(part);
    }
}

void Inventory::carved(const PartId& id) {
    const auto found = claims_.find(id);
    if (found == claims_.end()) return;
    const Claim& claim = found->second;
    for (const LdSize& planned : std::exchange(found->second.planned, {})) {
        LogicalDevice* entry = find_ld({claim.memory.device, planned.ld});
        if (entry == nullptr || entry->owner != id) continue;
        entry->planned.reset();
        if (planned.ld != claim.memory.ld) entry->owner.reset();
        settle(*entry);
    }
}

const Inventory::Claim* Inventory::claim_of(const PartId& id) const {
    const auto found = claims_.find(id);
    return found == claims_.end() ? nullptr : &found->second;
}

std::vector<const Inventory::Claim*> Inventory::claims_of(const HostId& host) const {
    std::vector<const Claim*> claims;
    const auto found = claims_for_.find(host);
    if (found != claims_for_.end())
        for (const PartId& id : found->second) claims.push_back(&claims_.at(id));
    return claims;
}

}  // namespace memtide::fm

#include "fabric-manager/model/tenant.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace memtide::fm {

void TenantLedger::hold(const Composition& composition) {
    let_go(composition.id);
    if (!composition.tenant) return;
    // One that shrinks holds its parts until they are erased, one that grows has its new size at once.
    const Bytes bytes = std::max(composition.size, held_size(composition));
    holdings_[composition.id] = {*composition.tenant, bytes};
    TenantUsage& usage = used_[*composition.tenant];
    usage.bytes += bytes;
    ++usage.compositions;
}

void TenantLedger::let_go(const CompositionId& id) {
    const auto found = holdings_.find(id);
    if (found == holdings_.end()) return;
    const auto usage = used_.find(found->second.tenant);
    usage->second.bytes.value -= found->second.bytes.value;
    if (--usage->second.compositions == 0) used_.erase(usage);
    holdings_.erase(found);
}

TenantUsage TenantLedger::used(const std::string& tenant) const {
    const auto found = used_.find(tenant);
    return found == used_.end() ? TenantUsage{} : found->second;
}

Outcome<> check_tenant(const Tenants& tenants, const TenantLedger& ledger, const CompositionRequest& request,
                       std::uint64_t more) {
    if (tenants.empty() || !request.tenant) return {};
    const auto found = tenants.find(*request.tenant);
    if (found == tenants.end())
        return refuse(problem::kUnknownTenant,
                      fmt::format("there is no tenant {} in the manager's configuration", *request.tenant));
    const TenantQuota& quota = found->second;
    if (!quota.hosts.empty() && !quota.hosts.contains(request.host))
        return refuse(
            problem::kHostNotAllowed,
            fmt::format("the tenant {} may not compose for host {}", *request.tenant, request.host.value),
            ErrorCode::kPermission);
    const TenantUsage used = ledger.used(*request.tenant);
    const auto exceeds = [](std::uint64_t limit, std::uint64_t now, std::uint64_t added) {
        return now >= limit ? added > 0 : added > limit - now;
    };
    if (quota.bytes && exceeds(quota.bytes->value, used.bytes.value, request.size.value))
        return refuse(problem::kQuotaExceeded,
                      fmt::format("the tenant {} uses {} of the {} that it may have; {} more is too much",
                                  *request.tenant, format_bytes(used.bytes), format_bytes(*quota.bytes),
                                  format_bytes(request.size)),
                      ErrorCode::kExhausted);
    if (quota.compositions && exceeds(*quota.compositions, used.compositions, more))
        return refuse(
            problem::kQuotaExceeded,
            fmt::format("the tenant {} has {} of the {} compositions that it may have; release one first",
                        *request.tenant, used.compositions, *quota.compositions),
            ErrorCode::kExhausted);
    return {};
}

}  // namespace memtide::fm

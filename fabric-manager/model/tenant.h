#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/problem.h"

namespace memtide::fm {

namespace problem {
inline constexpr std::string_view kUnknownTenant = "unknown-tenant";
inline constexpr std::string_view kHostNotAllowed = "host-not-allowed";
inline constexpr std::string_view kQuotaExceeded = "quota-exceeded";
}  // namespace problem

// What a tenant may have at a time; an absent limit is none.
struct TenantQuota {
    std::optional<Bytes> bytes;
    std::optional<std::uint64_t> compositions;
    std::set<HostId> hosts;  // for whose hosts it may compose; empty: all
    friend bool operator==(const TenantQuota&, const TenantQuota&) = default;
};
// By name. When there are none, `tenant` is a label that anybody may use.
using Tenants = std::map<std::string, TenantQuota>;

struct TenantUsage {
    Bytes bytes;
    std::uint64_t compositions = 0;
    friend bool operator==(const TenantUsage&, const TenantUsage&) = default;
};

struct TenantStatus {
    std::string name;
    TenantQuota quota;
    TenantUsage used;
};

// Adds up what the compositions that have not ended hold, by tenant: memory that is being erased still
// counts, since nobody else can have it. Each call costs the logarithm of what there is. Not thread safe.
class TenantLedger {
  public:
    // From the moment on that memory is claimed for it; again when its size or tenant has changed.
    void hold(const Composition& composition);
    // It has ended, or never came to be.
    void let_go(const CompositionId& id);
    [[nodiscard]] TenantUsage used(const std::string& tenant) const;

  private:
    struct Holding {
        std::string tenant;
        Bytes bytes;
    };
    std::map<CompositionId, Holding> holdings_;
    std::map<std::string, TenantUsage> used_;
};

// Why the request must not be carried out for its tenant's sake: unknown-tenant, host-not-allowed or
// quota-exceeded, with what is used and what is allowed. `more` is how many compositions it adds.
Outcome<> check_tenant(const Tenants& tenants, const TenantLedger& ledger, const CompositionRequest& request,
                       std::uint64_t more = 1);

}  // namespace memtide::fm

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/config/yaml.h"
#include "common/tls/server_context.h"
#include "fabric-manager/model/placement_limits.h"
#include "fabric-manager/model/tenant.h"
#include "fabric-manager/security/audit_file.h"
#include "fabric-manager/security/gate.h"

namespace memtide::fm {

// The sections tls, authentication, tenants and audit of the configuration.
struct SecurityConfig {
    std::optional<tls::ServerFiles> tls;  // nullopt: no TLS
    GateOptions gate;
    std::optional<AuditFileOptions> audit;
    // Whether it is safe to listen where others than this machine's users come from.
    [[nodiscard]] bool is_complete() const { return tls && gate.authentication; }
};

// `state`: path of the database, for the defaults of what lies beside it. Mistakes are recorded in the
// document; files are looked at only when the manager starts.
SecurityConfig read_security(const YamlMap& root, const std::string& state);
// Tenants with their quotas; their request rates go to `gate`.
Tenants read_tenants(const YamlMap& root, const std::vector<std::string>& hosts, GateOptions& gate,
                     PlacementDefaults& defaults);
// Limits that count where a request says nothing: of all, of a host or of a tenant.
PlacementLimits read_limits_of_placement(const YamlMap& map);

}  // namespace memtide::fm

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/http/message.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/security/role.h"

namespace memtide::fm {

// Whose request it is.
struct Principal : http::Caller {
    std::string name;  // "token t-7f3k2m9q", "certificate host0", "local", "anonymous": for the audit log
    std::optional<Role> role;           // nullopt: showed no credentials
    std::optional<std::string> tenant;  // of a tenant's token
    std::vector<HostId> hosts;          // those that an agent may speak for
    std::string token;                  // id of the token, when it is one

    [[nodiscard]] bool has(Privilege privilege) const {
        return privilege == Privilege::kPublic || (role && has_privilege(*role, privilege));
    }
    // Limited to what is its tenant's: nothing at all for whoever showed no credentials.
    [[nodiscard]] bool is_tenant() const { return !role || role == Role::kTenant; }
    // Whether it may know that the composition exists.
    [[nodiscard]] bool sees(const Composition& composition) const {
        return !is_tenant() || (tenant && composition.tenant == tenant);
    }
    // Whether it may act for the host's agent.
    [[nodiscard]] bool speaks_for(const HostId& host) const;
};

using PrincipalPtr = std::shared_ptr<const Principal>;

// Everything is allowed: of a manager that authenticates nobody and is reached from its own machine only.
PrincipalPtr local_principal();
PrincipalPtr anonymous_principal();
// Of a request that has passed the gate; anonymous when none has been attached.
const Principal& caller_of(const http::Request& request);

}  // namespace memtide::fm

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memtide::fm {

// Who somebody is to the manager. What each may do stands in role.cpp; docs/security.md has it as a table.
enum class Role {
    kAdmin,     // everything
    kOperator,  // runs the rack: all compositions, the whole fabric
    kViewer,    // looks at the same, changes nothing
    kTenant,    // its own compositions, within its quota
    kAgent,     // of one host: its desired state and its reports
};
inline constexpr std::array kRoles{Role::kAdmin, Role::kOperator, Role::kViewer, Role::kTenant, Role::kAgent};

std::string_view to_string(Role role);  // "admin", as in tokens and logs
std::optional<Role> parse_role(std::string_view text);

// What a route needs.
enum class Privilege {
    kPublic,              // nothing: also clients that show no credentials
    kReadFabric,          // pool, hosts, switches, devices, topology, metrics
    kReadCompositions,    // a tenant: its own
    kChangeCompositions,  // a tenant: its own
    kForceRelease,        // take memory from under a running host
    kReadEvents,          // a tenant: those of its own compositions
    kReadTenants,         // quotas and what is used of them; a tenant: its own
    kReadDesired,         // an agent: its own host's
    kReport,              // an agent: for its own host
};
inline constexpr std::array kPrivileges{Privilege::kPublic,
                                        Privilege::kReadFabric,
                                        Privilege::kReadCompositions,
                                        Privilege::kChangeCompositions,
                                        Privilege::kForceRelease,
                                        Privilege::kReadEvents,
                                        Privilege::kReadTenants,
                                        Privilege::kReadDesired,
                                        Privilege::kReport};

std::string_view to_string(Privilege privilege);  // "read-fabric", for refusals and logs

// Whether the role has the privilege at all; of what belongs to a tenant or a host, only its own.
bool has_privilege(Role role, Privilege privilege);

}  // namespace memtide::fm

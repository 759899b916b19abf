#include "fabric-manager/security/role.h"

#include <algorithm>
#include <utility>

namespace memtide::fm {
namespace {

constexpr std::uint32_t bit(Privilege privilege) { return 1U << static_cast<unsigned>(privilege); }

constexpr std::uint32_t kLook = bit(Privilege::kPublic) | bit(Privilege::kReadFabric) |
                                bit(Privilege::kReadCompositions) | bit(Privilege::kReadEvents) |
                                bit(Privilege::kReadTenants) | bit(Privilege::kReadDesired);
constexpr std::uint32_t kRun = kLook | bit(Privilege::kChangeCompositions) | bit(Privilege::kForceRelease);

constexpr std::uint32_t privileges_of(Role role) {
    switch (role) {
        case Role::kAdmin:
            return ~0U;
        case Role::kOperator:
            return kRun;
        case Role::kViewer:
            return kLook;
        case Role::kTenant:
            return bit(Privilege::kPublic) | bit(Privilege::kReadCompositions) |
                   bit(Privilege::kChangeCompositions) | bit(Privilege::kReadEvents) |
                   bit(Privilege::kReadTenants);
        case Role::kAgent:
            return bit(Privilege::kPublic) | bit(Privilege::kReadDesired) | bit(Privilege::kReport);
    }
    return 0;
}

}  // namespace

std::string_view to_string(Role role) {
    switch (role) {
        case Role::kAdmin:
            return "admin";
        case Role::kOperator:
            return "operator";
        case Role::kViewer:
            return "viewer";
        case Role::kTenant:
            return "tenant";
        case Role::kAgent:
            return "agent";
    }
    return "";
}

std::optional<Role> parse_role(std::string_view text) {
    const auto* const found = std::ranges::find(kRoles, text, [](Role role) { return to_string(role); });
    if (found == kRoles.end()) return std::nullopt;
    return *found;
}

std::string_view to_string(Privilege privilege) {
    switch (privilege) {
        case Privilege::kPublic:
            return "public";
        case Privilege::kReadFabric:
            return "read-fabric";
        case Privilege::kReadCompositions:
            return "read-compositions";
        case Privilege::kChangeCompositions:
            return "change-compositions";
        case Privilege::kForceRelease:
            return "force-release";
        case Privilege::kReadEvents:
            return "read-events";
        case Privilege::kReadTenants:
            return "read-tenants";
        case Privilege::kReadDesired:
            return "read-desired";
        case Privilege::kReport:
            return "report";
    }
    return "";
}

bool has_privilege(Role role, Privilege privilege) { return (privileges_of(role) & bit(privilege)) != 0; }

}  // namespace memtide::fm

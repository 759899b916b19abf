#include "fabric-manager/security/principal.h"

#include <algorithm>

namespace memtide::fm {

bool Principal::speaks_for(const HostId& host) const {
    return role != Role::kAgent || std::ranges::find(hosts, host) != hosts.end();
}

PrincipalPtr local_principal() {
    static const PrincipalPtr local = [] {
        auto principal = std::make_shared<Principal>();
        principal->name = "local";
        principal->role = Role::kAdmin;
        return principal;
    }();
    return local;
}

PrincipalPtr anonymous_principal() {
    static const PrincipalPtr anonymous = [] {
        auto principal = std::make_shared<Principal>();
        principal->name = "anonymous";
        return principal;
    }();
    return anonymous;
}

const Principal& caller_of(const http::Request& request) {
    const auto* const principal = dynamic_cast<const Principal*>(request.caller.get());
    return principal != nullptr ? *principal : *anonymous_principal();
}

}  // namespace memtide::fm

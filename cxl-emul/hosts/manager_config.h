#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// Files that the manager's configuration names.
struct ManagerFiles {
    std::string state;  // its journal
    // For https:// only.
    std::string certificate{};
    std::string key{};
    std::string client_ca{};
    std::string revoked{};  // may be empty
};

// The files of a folder that `memtide-fabric-manager certs init` made; revocation lists when there are any.
ManagerFiles manager_files(std::string state, const std::string& certificates);

// The configuration of a fabric manager that fits these switches and hosts (every `listen` with its real
// port): it listens where the hosts' agents look for it, `manager` being "http://ADDRESS:PORT",
// "https://ADDRESS:PORT" (TLS and authentication are on then) or "unix:/PATH". kInvalidArgument when
// `manager` is neither.
Result<std::string> manager_config(const Topology& topology, std::string_view manager,
                                   const ManagerFiles& files);

}  // namespace memtide::emul

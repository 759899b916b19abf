#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/http/credentials.h"

namespace memtide::emul {

// Where emulated agents find what they need for an https:// manager.
struct AgentCertificateFiles {
    std::string ca;      // whose certificate the manager has; empty: FOLDER/ca.pem, or the system's CAs
    std::string folder;  // agent-HOST.pem and agent-HOST.key of each host; empty: none shows a certificate
};

// What each of the hosts shows, in their order; all of them share whom they trust. Files that change are read
// again for the next connection. kInvalidArgument, kPermission, kIo: which file of which host is missing or
// does not fit, and what makes it; also when a certificate is another host's.
Result<std::vector<std::shared_ptr<http::Credentials>>> load_agent_credentials(
    const AgentCertificateFiles& files, std::span<const HostId> hosts);

}  // namespace memtide::emul

#pragma once

#include "common/metrics/registry.h"
#include "fabric-manager/engine/manager.h"
#include "fabric-manager/rest/agent_contacts.h"
#include "fabric-manager/rest/api.h"
#include "fabric-manager/security/gate.h"

namespace memtide::fm {

// What every handler works with; owned by RestApi.
struct Context {
    Manager& manager;
    metrics::Registry& metrics;
    RestOptions options;
    AgentContacts contacts;
};

}  // namespace memtide::fm

#pragma once

#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "tiering-agent/fabric/channel.h"
#include "tiering-agent/hotplug/controller.h"
#include "tiering-agent/policy/targets.h"

namespace memtide::agent {

// config/tiering-agent.yaml says what each means.
struct AgentConfig {
    std::string manager;
    http::CredentialFiles credentials{};
    HostId host;  // by default this machine's name, up to the first dot
    std::string state = "/run/memtide/tiering-agent";
    bool load_modules = true;
    ChannelTiming channel{};
    ControllerTiming controller{};
    TieringConfig tiering{};  // mode off unless the file has the block
};

// Mistakes are reported as FILE:LINE:COLUMN, one a line. `manager` and `host` may be missing: the command
// line can give them.
Result<AgentConfig> load_config(const std::string& path);

// What must hold whatever the values came from; kInvalidArgument with a sentence for people.
Result<> check_config(const AgentConfig& config);

// This machine's name up to the first dot, empty when that is not a valid name of a host.
HostId default_host();

}  // namespace memtide::agent

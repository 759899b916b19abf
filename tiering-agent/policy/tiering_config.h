#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/config/yaml.h"
#include "tiering-agent/policy/targets.h"

namespace memtide::agent {

// The uid of a user of this machine; nothing when there is none of that name.
using UserLookup = std::function<std::optional<std::uint32_t>(const std::string& name)>;
UserLookup system_users();  // getpwnam_r(3); thread safe

// Reads the `tiering` part of the agent's configuration (docs/tiering.md). Mistakes are recorded in the
// document of `tiering`: what is returned counts only if its check() is good. Without targets there is one,
// "all", of every process.
TieringConfig read_tiering(const YamlValue& tiering, const UserLookup& users);

}  // namespace memtide::agent

#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "tiering-agent/hotplug/state.h"

// The JSON of the agent channel (docs/rest.md: /v1/hosts/{host}/desired and /observed). Pure; never throws.
namespace memtide::agent {

// kProtocol for anything that is not a well-formed desired state, kConflict for one that is meant for another
// host; the text names the field. Unknown fields are ignored, so that a newer manager can talk to this agent.
Result<Desired> parse_desired(std::string_view text, const HostId& host);

struct AgentIdentity {
    std::string version;
    std::string boot_id;  // /proc/sys/kernel/random/boot_id
};
std::string format_observed(const Observed& observed, const AgentIdentity& identity);

// RFC 3339 with any offset and fraction, e.g. "2026-11-29T17:30:00.250Z"; kProtocol otherwise.
Result<WallTime> parse_time(std::string_view text);

}  // namespace memtide::agent

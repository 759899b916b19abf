#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "fabric-manager/model/placement_policy.h"

namespace memtide::fm {

// Failure-domain limits of a placement; absent ones are not said here.
struct PlacementLimits {
    std::optional<std::uint8_t> max_percent_per_device;
    std::optional<std::uint8_t> max_percent_per_switch;
    std::optional<bool> exclusive_devices;
    friend bool operator==(const PlacementLimits&, const PlacementLimits&) = default;
};

// Limits that count where a request says nothing. A tenant's go before a host's, and those before the rest.
struct PlacementDefaults {
    PlacementLimits all;
    std::map<HostId, PlacementLimits> hosts;
    std::map<std::string, PlacementLimits> tenants;
};

// Whose word a limit is, for people: "" the request's own, else "the default", "the default for host host0",
// "the default for tenant blue".
struct LimitOrigins {
    std::string max_percent_per_device{};
    std::string max_percent_per_switch{};
    std::string exclusive_devices{};
};

// Sets the limits of the policy to what counts: what the request `asked` for, or the default. One who may
// only tighten gets the stricter of the two.
LimitOrigins apply_defaults(const PlacementDefaults& defaults, const HostId& host,
                            const std::optional<std::string>& tenant, const PlacementLimits& asked,
                            bool may_loosen, PlacementPolicy& policy);

}  // namespace memtide::fm

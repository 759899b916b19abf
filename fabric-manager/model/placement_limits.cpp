#include "fabric-manager/model/placement_limits.h"

#include <algorithm>

namespace memtide::fm {

namespace {

template <typename T>
struct Default {
    std::optional<T> value;
    std::string origin;
};

template <typename T>
Default<T> default_of(const PlacementDefaults& defaults, const HostId& host,
                      const std::optional<std::string>& tenant, std::optional<T> PlacementLimits::* limit) {
    if (tenant)
        if (const auto own = defaults.tenants.find(*tenant);
            own != defaults.tenants.end() && own->second.*limit)
            return {own->second.*limit, "the default for tenant " + *tenant};
    if (const auto own = defaults.hosts.find(host); own != defaults.hosts.end() && own->second.*limit)
        return {own->second.*limit, "the default for host " + host.value};
    return {defaults.all.*limit, "the default"};
}

std::uint8_t stricter(std::uint8_t a, std::uint8_t b) { return std::min(a, b); }
bool stricter(bool a, bool b) { return a || b; }

// Without a default the policy is what the request says, or its own default, already.
template <typename T>
std::string settle(const Default<T>& fallback, const std::optional<T>& asked, bool may_loosen, T& limit) {
    if (!fallback.value) return "";
    if (!asked) {
        limit = *fallback.value;
        return fallback.origin;
    }
    if (may_loosen || stricter(*asked, *fallback.value) == *asked) return "";
    limit = *fallback.value;
    return fallback.origin;
}

}  // namespace

LimitOrigins apply_defaults(const PlacementDefaults& defaults, const HostId& host,
                            const std::optional<std::string>& tenant, const PlacementLimits& asked,
                            bool may_loosen, PlacementPolicy& policy) {
    const auto fallback = [&](auto limit) { return default_of(defaults, host, tenant, limit); };
    using L = PlacementLimits;
    return {settle(fallback(&L::max_percent_per_device), asked.max_percent_per_device, may_loosen,
                   policy.max_percent_per_device),
            settle(fallback(&L::max_percent_per_switch), asked.max_percent_per_switch, may_loosen,
                   policy.max_percent_per_switch),
            settle(fallback(&L::exclusive_devices), asked.exclusive_devices, may_loosen,
                   policy.exclusive_devices)};
}

}  // namespace memtide::fm

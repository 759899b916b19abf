#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric-manager/model/time.h"

namespace memtide::fm {

// What a device says of its own health (Get Health Info; CXL 3.1, 8.2.9.9.3.1).
enum class HealthLevel { kNormal, kWarning, kCritical };
std::string_view to_string(HealthLevel level);  // "ok", "warning", "critical"

struct DeviceHealth {
    bool maintenance_needed = false;
    bool performance_degraded = false;
    bool replacement_needed = false;
    bool capacity_degraded = false;
    std::uint8_t media_status = 0;  // as the device says; 0: normal
    HealthLevel life = HealthLevel::kNormal;
    HealthLevel temperature = HealthLevel::kNormal;
    bool many_corrected_volatile_errors = false;  // by the device's own threshold
    bool many_corrected_persistent_errors = false;
    std::optional<int> life_used_percent;  // beyond 100 for one that is used longer than it was made for
    std::optional<int> temperature_celsius;
    std::uint32_t dirty_shutdowns = 0;
    std::uint32_t corrected_volatile_errors = 0;
    std::uint32_t corrected_persistent_errors = 0;
    Time as_of;  // when it said so

    friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

// What is wrong, worst first, in words for people: no numbers that change all the time are in it.
struct HealthFinding {
    HealthLevel level = HealthLevel::kNormal;
    std::string what;
    friend bool operator==(const HealthFinding&, const HealthFinding&) = default;
};
std::vector<HealthFinding> findings(const DeviceHealth& health);
// The worst of the findings. What is critical gets no new memory placed on it.
HealthLevel verdict(const DeviceHealth& health);
// "its hardware has to be replaced; it has used up most of its life"; empty when all is well.
std::string describe(const std::vector<HealthFinding>& all);

}  // namespace memtide::fm

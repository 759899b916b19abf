#include "cxl-emul/faults/health.h"

#include <algorithm>

namespace memtide::emul {

fmapi::GetHealthInfoResponse health_with(std::span<const FaultKind> faults) {
    const auto has = [&](FaultKind kind) { return std::ranges::find(faults, kind) != faults.end(); };
    fmapi::GetHealthInfoResponse health{.life_used = 0, .temperature = 35};
    if (has(FaultKind::kWorn)) {
        health.health_status |= fmapi::kMaintenanceNeeded;
        health.additional_status |= static_cast<std::uint8_t>(fmapi::HealthLevel::kWarning);
        health.life_used = 93;
    }
    if (has(FaultKind::kFailing)) {
        health.health_status |= fmapi::kReplacementNeeded;
        health.media_status = fmapi::MediaStatus::kDataLossImminent;
        health.additional_status |= fmapi::kCorrectedVolatileErrors;
        health.corrected_volatile_errors = 4711;
    }
    if (has(FaultKind::kMediaError)) {
        health.health_status |= fmapi::kPerformanceDegraded;
        health.additional_status |= fmapi::kCorrectedVolatileErrors;
        health.corrected_volatile_errors = std::max<std::uint32_t>(health.corrected_volatile_errors, 17);
    }
    if (has(FaultKind::kPoison)) health.media_status = fmapi::MediaStatus::kDataLost;
    return health;
}

}  // namespace memtide::emul

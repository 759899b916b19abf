#include "fabric-manager/model/device_health.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memtide::fm {

namespace {

using enum HealthLevel;

// Pooled memory is volatile: what only persistent memory loses is no more than a warning.
struct MediaRow {
    HealthLevel level;
    std::string_view what;
};
constexpr std::array<MediaRow, 10> kMedia{{
    {kNormal, ""},
    {kCritical, "its media is not ready"},
    {kWarning, "it has lost the persistency of writes"},
    {kCritical, "it has lost all its data"},
    {kWarning, "it loses the persistency of writes when power is lost"},
    {kWarning, "it loses the persistency of writes when it is shut down"},
    {kWarning, "it is about to lose the persistency of writes"},
    {kWarning, "it loses all its data when power is lost"},
    {kWarning, "it loses all its data when it is shut down"},
    {kCritical, "it is about to lose all its data"},
}};

HealthFinding media_finding(std::uint8_t status) {
    if (status < kMedia.size()) return {kMedia[status].level, std::string(kMedia[status].what)};
    return {kWarning, fmt::format("its media status is {:02x}h, which is not known here", status)};
}

}  // namespace

std::string_view to_string(HealthLevel level) {
    switch (level) {
        case kNormal:
            return "ok";
        case kWarning:
            return "warning";
        case kCritical:
            return "critical";
    }
    return "ok";
}

std::vector<HealthFinding> findings(const DeviceHealth& health) {
    std::vector<HealthFinding> all;
    const auto add = [&](bool is_so, HealthLevel level, std::string_view what) {
        if (is_so) all.push_back({level, std::string(what)});
    };
    add(health.replacement_needed, kCritical, "its hardware has to be replaced");
    if (health.media_status != 0) all.push_back(media_finding(health.media_status));
    add(health.life != kNormal, health.life,
        health.life == kCritical ? "its life is used up" : "most of its life is used up");
    add(health.temperature != kNormal, health.temperature,
        health.temperature == kCritical ? "it is too hot" : "it is getting hot");
    add(health.capacity_degraded, kWarning, "it has less memory than it was made with");
    add(health.performance_degraded, kWarning, "it is slower than it should be");
    add(health.maintenance_needed, kWarning, "it needs maintenance");
    add(health.many_corrected_volatile_errors, kWarning, "it corrects many errors of volatile memory");
    add(health.many_corrected_persistent_errors, kWarning, "it corrects many errors of persistent memory");
    std::ranges::stable_sort(all, std::ranges::greater{}, &HealthFinding::level);
    return all;
}

HealthLevel verdict(const DeviceHealth& health) {
    const std::vector<HealthFinding> all = findings(health);
    return all.empty() ? kNormal : all.front().level;
}

std::string describe(const std::vector<HealthFinding>& all) {
    std::string text;
    for (const HealthFinding& one : all) text += (text.empty() ? "" : "; ") + one.what;
    return text;
}

}  // namespace memtide::fm

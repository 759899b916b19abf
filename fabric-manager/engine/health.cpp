// Health of devices, as they tell it when they are asked.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

namespace {

// A device that does not say is asked less and less often: some peers answer nothing to what they do not
// know, or hang up.
constexpr int kMostDoublings = 6;

HealthLevel level_of(fmapi::HealthLevel level) {
    if (level == fmapi::HealthLevel::kNormal) return HealthLevel::kNormal;
    return level == fmapi::HealthLevel::kWarning ? HealthLevel::kWarning : HealthLevel::kCritical;
}

DeviceHealth health_of(const fmapi::GetHealthInfoResponse& seen, Time now) {
    const auto has = [](std::uint8_t bits, std::uint8_t bit) { return (bits & bit) != 0; };
    DeviceHealth health;
    health.maintenance_needed = has(seen.health_status, fmapi::kMaintenanceNeeded);
    health.performance_degraded = has(seen.health_status, fmapi::kPerformanceDegraded);
    health.replacement_needed = has(seen.health_status, fmapi::kReplacementNeeded);
    health.capacity_degraded = has(seen.health_status, fmapi::kCapacityDegraded);
    health.media_status = static_cast<std::uint8_t>(seen.media_status);
    health.life = level_of(seen.life_level());
    health.temperature = level_of(seen.temperature_level());
    health.many_corrected_volatile_errors = has(seen.additional_status, fmapi::kCorrectedVolatileErrors);
    health.many_corrected_persistent_errors = has(seen.additional_status, fmapi::kCorrectedPersistentErrors);
    if (seen.life_used != fmapi::kLifeUsedUnknown) health.life_used_percent = seen.life_used;
    if (seen.temperature != fmapi::kTemperatureUnknown) health.temperature_celsius = seen.temperature;
    health.dirty_shutdowns = seen.dirty_shutdowns;
    health.corrected_volatile_errors = seen.corrected_volatile_errors;
    health.corrected_persistent_errors = seen.corrected_persistent_errors;
    health.as_of = now;
    return health;
}

}  // namespace

// The device at its port; of an MLD whose FM-owned LD does not know the command an LD that answers there.
Async<Result<DeviceHealth>> Core::ask_for_health(SwitchId id, DeviceId name) {
    const std::shared_ptr<FmApiClient> client = switches_.at(id)->client;
    const std::uint8_t port = inventory_.device(name)->port;
    Result<fmapi::GetHealthInfoResponse> answer = co_await client->health_info(Target::device(port));
    if (!answer && answer.error().code == ErrorCode::kInvalidArgument) {
        const Device& device = *inventory_.device(name);
        const Head* through = device.head_at(id, port);
        const auto ld = std::ranges::find_if(device.lds, [&](const LogicalDevice& one) {
            return one.id != kWholeDevice && one.size.value != 0 && is_reached(one, through);
        });
        if (ld != device.lds.end()) {
            const Target target = Target::logical_device(port, static_cast<std::uint8_t>(ld->id.value));
            answer = co_await client->health_info(target);
        }
    }
    if (!answer) co_return std::unexpected(answer.error());
    co_return health_of(*answer, now());
}

void Core::note_health(const DeviceId& name, const DeviceHealth& health) {
    const Device& device = *inventory_.device(name);
    const std::vector<HealthFinding> before = device.health ? findings(*device.health) : findings({});
    const std::vector<HealthFinding> after = findings(health);
    const bool was_kept_away = !device.unfit.empty();
    inventory_.set_health(name, health);
    if (was_kept_away && device.unfit.empty()) heal_all();
    if (before == after) return;
    Event event;
    event.type = "device.health";
    event.switch_id = device.switch_id;
    event.device = name;
    event.code = std::string(to_string(verdict(health)));
    event.detail = after.empty() ? "it says that all is well again" : describe(after);
    if (!device.unfit.empty()) event.detail += "; nothing new is placed on it";
    emit(std::move(event));
}

// Asks those devices of the switch whose turn it is; answers when the next one's is.
Async<SteadyTime> Core::watch_health(SwitchId id) {
    SwitchState& state = *switches_.at(id);
    const Milliseconds pause = config_.timing.health_poll;
    std::vector<DeviceId> present;
    if (inventory_.find_switch(id)->up && !state.failed)
        for (const Device* device : inventory_.devices_behind(id))
            if (device->switch_id == id) present.push_back(device->id);
    std::erase_if(state.health,
                  [&](const auto& one) { return std::ranges::find(present, one.first) == present.end(); });
    SteadyTime next = std::chrono::steady_clock::now() + pause;
    for (const DeviceId& name : present) {
        SwitchState::HealthWatch& watch = state.health[name];
        const SteadyTime current = std::chrono::steady_clock::now();
        if (watch.due <= current) {
            const Result<DeviceHealth> health = co_await ask_for_health(id, name);
            if (stopping_) break;
            const bool unknown = !health && health.error().code == ErrorCode::kInvalidArgument;
            if (health) note_health(name, *health);
            watch.failures = health ? 0 : unknown ? kMostDoublings : watch.failures + 1;
            watch.due = current + pause * (1 << std::min(watch.failures, kMostDoublings));
            if (!health && health.error().code == ErrorCode::kUnavailable) break;
        }
        next = std::min(next, watch.due);
    }
    co_return next;
}

// Of a device that was not there before, or was away.
void Core::ask_for_health_soon(const SwitchId& id, const DeviceId& name) {
    SwitchState& state = *switches_.at(id);
    state.health.erase(name);
    state.devices_added.notify_all();
}

Async<> Core::run_health(SwitchId id) {
    SwitchState& state = *switches_.at(id);
    while (!stopping_) {
        const SteadyTime next = co_await watch_health(id);
        if (stopping_) break;
        co_await state.devices_added.wait_until(next);
    }
}

}  // namespace memtide::fm

// What comes and goes all the time: told once, and kept from new placements until it has been quiet.
#include <fmt/format.h>

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

namespace {

std::string port_key(const SwitchId& id, std::uint8_t port) {
    return fmt::format("port/{}/{}", id.value, port);
}
std::string device_key(const DeviceId& id) { return "device/" + id.value; }

}  // namespace

std::string Core::key_of(const Flapper& one) {
    if (one.host) return "host/" + one.host->value;
    if (one.device) return device_key(*one.device);
    if (one.port) return port_key(*one.switch_id, *one.port);
    return "switch/" + one.switch_id->value;
}

std::string_view Core::kind_of(const Flapper& one) {
    if (one.host) return "host";
    if (one.device) return "device";
    return one.port ? "port" : "switch";
}

// The device that is at the port, or was last.
const Device* Core::last_device_at(const SwitchId& id, std::uint8_t port) const {
    if (const Device* present = inventory_.device_at(id, port)) return present;
    for (const auto& [name, device] : inventory_.devices())
        if (device.switch_id == id && device.port == port) return &device;
    return nullptr;
}

// A device and its port are one thing to whoever looks on: what is told of one is not told of the other.
bool Core::is_held(const Flapper& one) const {
    if (flaps_.hold(key_of(one)) != nullptr) return true;
    if (one.device) {
        const Device* device = inventory_.device(*one.device);
        return device != nullptr && flaps_.hold(port_key(device->switch_id, device->port)) != nullptr;
    }
    if (!one.port) return false;
    const Device* device = last_device_at(*one.switch_id, *one.port);
    return device != nullptr && flaps_.hold(device_key(device->id)) != nullptr;
}

Event Core::flap_event(Flapper one, std::string_view what, std::string detail) const {
    if (one.port && !one.device)
        if (const Device* device = last_device_at(*one.switch_id, *one.port)) one.device = device->id;
    Event event;
    event.type = fmt::format("{}.{}", kind_of(one), what);
    event.host = one.host;
    event.switch_id = one.switch_id;
    event.device = one.device;
    event.detail = std::move(detail);
    return event;
}

// Something came or went, and `event` says so: told unless it is known to do that all the time.
void Core::tell_change(const Flapper& one, Event event) {
    const bool held_before = is_held(one);
    const FlapDamper::Verdict verdict = flaps_.note(key_of(one), std::chrono::steady_clock::now());
    if (!held_before) emit(std::move(event));
    if (verdict != FlapDamper::Verdict::kFlapping) return;
    flapping_[key_of(one)] = one;
    keep_away(one);
    flaps_changed_.notify_all();
    if (held_before) return;
    const FlapDamper::Hold hold = *flaps_.hold(key_of(one));
    emit(
        flap_event(one, "flapping",
                   fmt::format("it changed {} times within {} s: nothing new is given to it, and its changes "
                               "are not told, until it has been quiet for {} s or longer",
                               hold.changes, config_.flapping.window.count() / 1000,
                               (hold.length.count() + 999) / 1000)));
}

// Has placements stay away from it for as long as it is held.
void Core::keep_away(const Flapper& one) {
    const auto why = [&](const char* what) {
        return is_held(one) ? fmt::format("{} comes and goes; held until it has been quiet for a while", what)
                            : std::string();
    };
    if (one.host)
        inventory_.host(*one.host)->held = is_held(one) ? "it reboots again and again" : "";
    else if (one.device)
        inventory_.set_held(*one.device, why("it"));
    else if (one.port) {
        if (const Device* device = last_device_at(*one.switch_id, *one.port))
            inventory_.set_held(device->id, why("it, or its link,"));
    } else
        inventory_.set_held(*one.switch_id, why("its switch"));
}

// Lets go of what has been quiet for long enough.
Async<> Core::run_flaps() {
    constexpr std::chrono::hours kForget{1};
    while (!stopping_) {
        bool freed = false;
        for (const FlapDamper::Settled& settled : flaps_.settle(std::chrono::steady_clock::now())) {
            const auto found = flapping_.find(settled.key);
            if (found == flapping_.end()) continue;
            const Flapper one = std::move(found->second);
            flapping_.erase(found);
            keep_away(one);
            if (is_held(one)) continue;
            freed = true;
            emit(flap_event(one, "settled",
                            fmt::format("it is used again, after {} changes", settled.changes)));
        }
        if (freed) heal_all();
        const SteadyTime current = std::chrono::steady_clock::now();
        co_await flaps_changed_.wait_until(current + flaps_.remaining(current).value_or(kForget));
    }
}

}  // namespace memtide::fm

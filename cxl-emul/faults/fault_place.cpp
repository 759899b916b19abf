#include "cxl-emul/faults/fault_place.h"

#include <algorithm>

#include <fmt/format.h>

#include "cxl-emul/faults/fault_table.h"

namespace memtide::emul {
namespace {

using Place = std::expected<FaultPlace, PlaceMistake>;

std::unexpected<PlaceMistake> mistake(std::string key, std::string message) {
    return std::unexpected(PlaceMistake{std::move(key), std::move(message)});
}

template <typename Has>
std::vector<SwitchId> switches_with(const Topology& topology, const std::optional<SwitchId>& only, Has has) {
    std::vector<SwitchId> found;
    for (const SwitchConfig& one : topology.switches)
        if ((!only || one.name == *only) && has(one)) found.push_back(one.name);
    return found;
}

Place place_of_port(const Fault& fault, const Topology& topology) {
    if (!fault.switch_name && topology.switches.size() != 1)
        return mistake("port", "a port of which switch? There are several: say switch: NAME");
    const SwitchConfig* config =
        fault.switch_name ? topology.find_switch(*fault.switch_name) : &topology.switches.front();
    const PortConfig* port = config->port(*fault.port);
    if (port == nullptr)
        return mistake("port", fmt::format("{} has no port {}", config->name.value, *fault.port));
    const bool is_cable =
        port->cascade && (fault.kind == FaultKind::kLinkDown || fault.kind == FaultKind::kSurpriseRemoval);
    if (!port->device && !port->host && !is_cable)
        return mistake("port", fmt::format("nothing is at port {} of {}", *fault.port, config->name.value));
    if (port->host && fault.kind != FaultKind::kLinkDown)
        return mistake("port", fmt::format("at port {} of {} is a host, and no device", *fault.port,
                                           config->name.value));
    return FaultPlace{{config->name}, fault.port, port->device, port->host};
}

Place place_of_device(const Fault& fault, const Topology& topology) {
    auto switches = switches_with(topology, fault.switch_name, [&](const SwitchConfig& one) {
        return one.device(*fault.device) != nullptr;
    });
    if (switches.empty())
        return mistake("device", fmt::format("there is no device \"{}\"{}", fault.device->value,
                                             fault.switch_name ? " in " + fault.switch_name->value : ""));
    return FaultPlace{std::move(switches), std::nullopt, fault.device, std::nullopt};
}

Place place_of_host(const Fault& fault, const Topology& topology) {
    auto switches = switches_with(topology, fault.switch_name, [&](const SwitchConfig& one) {
        return one.vcs_of(*fault.host) != nullptr;
    });
    if (switches.empty())
        return mistake("host", fmt::format("no host \"{}\" is attached to {}", fault.host->value,
                                           fault.switch_name ? fault.switch_name->value : "any switch"));
    return FaultPlace{std::move(switches), std::nullopt, std::nullopt, fault.host};
}

// What a device has, and the fault speaks of.
std::optional<PlaceMistake> mistake_about_ld(const Fault& fault, const FaultPlace& place,
                                             const Topology& topology) {
    if (!fault.ld || !place.device) return std::nullopt;
    const DeviceConfig* device = topology.find_switch(place.switches.front())->device(*place.device);
    const std::size_t lds = std::max<std::size_t>(device->lds.size(), 1);
    if (*fault.ld < lds) return std::nullopt;
    return PlaceMistake{"ld", fmt::format("device {} has LDs 0 to {}", device->name.value, lds - 1)};
}

}  // namespace

std::expected<FaultPlace, PlaceMistake> place_of(const Fault& fault, const Topology& topology) {
    if (fault.switch_name && topology.find_switch(*fault.switch_name) == nullptr)
        return mistake("switch", fmt::format("there is no switch \"{}\"", fault.switch_name->value));
    Place place = FaultPlace{
        switches_with(topology, fault.switch_name, [](const SwitchConfig&) { return true; }), {}, {}, {}};
    if (fault.port)
        place = place_of_port(fault, topology);
    else if (fault.device)
        place = place_of_device(fault, topology);
    else if (fault.host)
        place = place_of_host(fault, topology);
    else if (fault.kind == FaultKind::kPowerCycle && place->switches.size() > 1)
        return mistake("fault", "which switch? There are several: say switch: NAME, or device: NAME");
    if (!place) return place;
    if (auto wrong = mistake_about_ld(fault, *place, topology)) return std::unexpected(*std::move(wrong));
    return place;
}

}  // namespace memtide::emul

#include "cxl-emul/hosts/fleet.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <fmt/format.h>

#include "common/log/log.h"

namespace memtide::emul {
namespace asio = boost::asio;

// Of the LD in a slot: gone with the power of its switch, and when it is unbound.
class Fleet::LdMailbox final : public Mailbox {
  public:
    LdMailbox(const Fleet& fleet, HotplugSlot slot) : fleet_(fleet), slot_(std::move(slot)) {}

    Result<fmapi::Message> send(const fmapi::Message& request) override {
        const auto running = fleet_.running_switch(slot_.switch_name);
        if (!running) return std::unexpected(running.error());
        return (*running)->execute_of_host(slot_.vcs, slot_.vppb, request);
    }

  private:
    const Fleet& fleet_;
    HotplugSlot slot_;
};

// Where binds at the switches become devices in the slots of hosts.
class Fleet::Hotplug final : public HotplugBackend {
  public:
    explicit Hotplug(Fleet& fleet) : fleet_(fleet) {}

    asio::awaitable<Result<>> attach(HotplugDevice device) override {
        const auto host = fleet_.hosts_.find(device.slot.host);
        const auto place = fleet_.devices_.find(DeviceId(device.media_file));
        if (host == fleet_.hosts_.end() || place == fleet_.devices_.end())
            co_return fail(ErrorCode::kInternal, "no such host or device: " + device.slot.host.value);
        const auto [owner, fresh] = fleet_.owners_.emplace(device.serial, device.slot.host);
        if (!fresh)
            fleet_.ledger_.violation(
                {"two-hosts", device.slot.host, device.serial, owner->second.value + " has it already"});
        PluggedDevice plugged{device.serial, place->second.media, device.offset, device.size};
        if (device.dynamic) plugged.mailbox = std::make_shared<LdMailbox>(fleet_, device.slot);
        BoundDevice bound{device.slot, std::move(plugged), !place->second.link_down};
        host->second->bind(std::move(bound));
        co_return Result<>();
    }

    asio::awaitable<Result<>> detach(HotplugSlot slot, fmapi::UnbindOption option) override {
        const auto host = fleet_.hosts_.find(slot.host);
        if (host == fleet_.hosts_.end()) co_return fail(ErrorCode::kInternal, "no host " + slot.host.value);
        for (const auto& [serial, one] : host->second->bound())
            if (one.slot.switch_name == slot.switch_name && one.slot.vppb == slot.vppb)
                fleet_.owners_.erase(serial);
        const bool surprise = option == fmapi::UnbindOption::kSurpriseHotRemove;
        host->second->unbind(slot, surprise ? HostModel::Removal::kSurprise : HostModel::Removal::kAsked);
        co_return Result<>();
    }

    asio::awaitable<void> interrupt(HotplugSlot slot) override {
        if (const auto host = fleet_.hosts_.find(slot.host); host != fleet_.hosts_.end())
            host->second->interrupt(slot);
        co_return;
    }

  private:
    Fleet& fleet_;
};

// --- Building ---

Fleet::Fleet(asio::any_io_executor executor, const FleetOptions& options)
    : executor_(std::move(executor)),
      options_(options),
      pool_(executor_, options.manager,
            options.certificates.folder.empty() ? ClientPool::kMostIdle : ClientPool::kMostIdleOfMany) {}

Fleet::~Fleet() = default;

Result<std::unique_ptr<Fleet>> Fleet::open(asio::any_io_executor executor, const FleetOptions& options) {
    const auto topology = plan_fleet(options);
    if (!topology) return std::unexpected(topology.error());
    std::unique_ptr<Fleet> fleet(new Fleet(std::move(executor), options));
    if (auto built = fleet->build(*topology); !built) return std::unexpected(built.error());
    return fleet;
}

Result<> Fleet::build_hosts(const std::vector<HostId>& names) {
    options_.count = names.size();
    const auto identities = load_agent_credentials(options_.certificates, names);
    if (!identities) return std::unexpected(identities.error());
    const std::vector<HostFaults> faults = plan_faults(options_);
    for (std::uint64_t i = 0; i < options_.count; ++i) {
        const HostId& name = names[i];
        const std::uint64_t next = (i + 1) % options_.count;
        const Agent::Neighbour neighbour{names[next], (*identities)[next]};
        // Every host draws from a sequence of its own, so that what one does changes nothing for others.
        auto host = std::make_unique<Host>(executor_, name, options_.delays, (options_.seed << 32) + i,
                                           ledger_, pool_, (*identities)[i], neighbour);
        for (std::size_t f = 0; f < kHostFaults; ++f)
            if (faults[i].has(static_cast<HostFault>(f))) host->begin_fault(static_cast<HostFault>(f));
        hosts_.emplace(name, std::move(host));
    }
    return {};
}

Result<> Fleet::build(const Topology& topology) {
    name_ = topology.name;
    if (auto built = build_hosts(fleet_hosts(topology, options_)); !built) return built;
    const auto hotplug = std::make_shared<Hotplug>(*this);
    SharedDeviceMap shared;
    for (const DeviceConfig& device : topology.multi_headed)
        shared[device.name] = {make_device(device),
                               std::make_shared<MemoryMedia>(device.name.value, device.size)};
    for (const SwitchConfig& config : topology.switches) {
        SwitchPlace& place = switches_[config.name];
        order_.push_back(config.name);
        place.life = std::make_unique<SwitchLife>(executor_, config, hotplug, shared);
        for (const PortConfig& port : config.ports)
            if (port.host && hosts_.contains(*port.host)) place.hosts.push_back(hosts_.at(*port.host).get());
        for (std::size_t i = 0; i < config.devices.size(); ++i) {
            DevicePlace& device = devices_[config.devices[i].name];
            device.on.push_back(&place);
            device.media = place.life->media()[i];
        }
        if (auto on = place.life->power_on(); !on) return on;
    }
    return {};
}

void Fleet::capture(fmapi::SessionCapture& file) {
    for (const SwitchId& id : order_) life_of(id).capture(file.of_switch(id.value));
}

void Fleet::start() {
    for (const auto& [name, host] : hosts_) host->start();
}

void Fleet::stop() {
    stopped_ = true;
    for (const auto& [name, host] : hosts_) host->stop();
    for (const auto& [name, place] : switches_) place.life->stop();
    for (asio::steady_timer& timer : timers_) timer.cancel();
}

Topology Fleet::topology() const {
    Topology topology;
    topology.name = name_;
    for (const SwitchId& id : order_) topology.switches.push_back(switches_.at(id).life->config());
    return topology;
}

// --- Looking ---

FleetCounts Fleet::counts() const {
    FleetCounts counts;
    for (const auto& [name, host] : hosts_) {
        ++counts.hosts;
        counts.agents += host->agent_runs() ? 1 : 0;
        counts.faulty_hosts += host->model().faults().none() ? 0 : 1;
        counts.bound += host->bound().size();
        counts.plugged += host->model().plugged_count();
        counts.online += host->model().online_count();
        counts.wanted += host->model().wanted_count();
    }
    for (const auto& [name, place] : switches_) counts.switches_off += place.life->is_on() ? 0 : 1;
    return counts;
}

const Host* Fleet::host(const HostId& id) const {
    const auto found = hosts_.find(id);
    return found == hosts_.end() ? nullptr : found->second.get();
}

// --- Time ---

void Fleet::spawn(asio::awaitable<void> coroutine) {
    asio::co_spawn(executor_, std::move(coroutine), [](const std::exception_ptr&) {});
}

// Forgotten when the fleet stops first.
void Fleet::later(Duration lasts, std::function<void()> what) {
    if (!lasts) return;
    const auto timer = timers_.emplace(timers_.end(), executor_, *lasts);
    timer->async_wait([this, timer, what = std::move(what)](const boost::system::error_code& error) {
        timers_.erase(timer);
        if (!error && !stopped_) what();
    });
}

// --- Faults of hosts ---

Result<> Fleet::begin_fault(const HostId& id, HostFault fault, Duration lasts) {
    const auto found = hosts_.find(id);
    if (found == hosts_.end()) return fail(ErrorCode::kNotFound, "no host named " + id.value);
    if (fault == HostFault::kWrongCertificate && options_.certificates.folder.empty())
        return fail(ErrorCode::kConflict, "the hosts show no certificates (--agent-certs)");
    if (fault == HostFault::kWrongCertificate && options_.count < 2)
        return fail(ErrorCode::kConflict, "there is no other host whose certificate it could show");
    Host& host = *found->second;
    const std::uint64_t number = host.begin_fault(fault);
    if (fault == HostFault::kLinkDown)
        for (const auto& [name, place] : switches_) place.life->set_host_link(id, false);
    later(lasts, [this, id, fault, number] {
        if (hosts_.at(id)->begun(fault) == number) (void)end_fault(id, fault);
    });
    return {};
}

Result<> Fleet::end_fault(const HostId& id, HostFault fault) {
    const auto found = hosts_.find(id);
    if (found == hosts_.end()) return fail(ErrorCode::kNotFound, "no host named " + id.value);
    if (fault == HostFault::kLinkDown && found->second->model().faults().has(fault))
        for (const auto& [name, place] : switches_) place.life->set_host_link(id, true);
    found->second->end_fault(fault);
    return {};
}

// --- Power of switches ---

asio::awaitable<void> Fleet::turn_off(SwitchPlace& place, Duration lasts) {
    const SwitchId id = place.life->config().name;
    co_await place.life->power_off();
    for (Host* host : place.hosts) {
        for (const auto& [serial, one] : host->bound())
            if (one.slot.switch_name == id) owners_.erase(serial);
        host->lose_switch(id);
    }
    set_cables(place, false);
    ++ledger_.power_cycles;
    place.changing = false;
    later(lasts, [this, id] { (void)power_on(id); });
}

asio::awaitable<void> Fleet::turn_on(SwitchPlace& place) {
    const auto on = co_await place.life->power_on_again();
    if (!on) log::error("a switch does not come back", {{"error", on.error()}});
    for (const auto& [id, device] : devices_) {
        if (std::ranges::find(device.on, &place) == device.on.end()) continue;
        if (device.link_down) place.life->set_device_link(id, false);
        if (device.worn || device.failing) set_health(id, device);
    }
    for (const Host* host : place.hosts)
        if (!host->reaches(place.life->config().name)) place.life->set_host_link(host->name(), false);
    set_cables(place, true);
    place.changing = false;
    if (stopped_) place.life->stop();
}

Result<Switch*> Fleet::running_switch(const SwitchId& id) const {
    const auto found = switches_.find(id);
    if (found == switches_.end()) return fail(ErrorCode::kNotFound, "no switch named " + id.value);
    Switch* const running = found->second.life->running();
    if (running == nullptr) return fail(ErrorCode::kConflict, id.value + " is off");
    return running;
}

Result<> Fleet::power_off(const SwitchId& id, Duration lasts) {
    const auto found = switches_.find(id);
    if (found == switches_.end()) return fail(ErrorCode::kNotFound, "no switch named " + id.value);
    SwitchPlace& place = found->second;
    if (place.changing || !place.life->is_on())
        return fail(ErrorCode::kConflict, id.value + " is off already");
    place.changing = true;
    spawn(turn_off(place, lasts));
    return {};
}

Result<> Fleet::power_on(const SwitchId& id) {
    const auto found = switches_.find(id);
    if (found == switches_.end()) return fail(ErrorCode::kNotFound, "no switch named " + id.value);
    SwitchPlace& place = found->second;
    if (place.changing || place.life->is_on()) return fail(ErrorCode::kConflict, id.value + " is on already");
    place.changing = true;
    spawn(turn_on(place));
    return {};
}

// --- Faults of devices ---

void Fleet::set_link(const DeviceId& id, DevicePlace& place, bool up) {
    place.link_down = !up;
    for (SwitchPlace* on : place.on) {
        on->life->set_device_link(id, up);
        for (Host* host : on->hosts) host->set_device_link(id.value, up);
    }
}

void Fleet::set_wear(const DeviceId& id, DevicePlace& place, DeviceFault fault, bool on) {
    bool* const which = fault == DeviceFault::kWorn      ? &place.worn
                        : fault == DeviceFault::kFailing ? &place.failing
                                                         : nullptr;
    if (which == nullptr || std::exchange(*which, on) == on) return;
    set_health(id, place);
}

void Fleet::set_health(const DeviceId& id, const DevicePlace& place) {
    fmapi::GetHealthInfoResponse health{.life_used = 0, .temperature = 35};
    if (place.worn) {
        health.health_status |= fmapi::kMaintenanceNeeded;
        health.additional_status |= static_cast<std::uint8_t>(fmapi::HealthLevel::kWarning);
        health.life_used = 93;
    }
    if (place.failing) {
        health.health_status |= fmapi::kReplacementNeeded;
        health.media_status = fmapi::MediaStatus::kDataLossImminent;
        health.additional_status |= fmapi::kCorrectedVolatileErrors;
        health.corrected_volatile_errors = 4711;
    }
    for (SwitchPlace* on : place.on) on->life->set_device_health(id, health);
}

Result<> Fleet::begin_fault(const DeviceId& id, DeviceFault fault, Duration lasts) {
    const auto found = devices_.find(id);
    if (found == devices_.end()) return fail(ErrorCode::kNotFound, "no device named " + id.value);
    DevicePlace& place = found->second;
    const std::uint64_t number = ++place.begun;
    if (fault == DeviceFault::kLinkDown) set_link(id, place, false);
    if (fault == DeviceFault::kEraseFails) place.media->break_erase(true);
    if (fault == DeviceFault::kEraseDoesNothing) place.media->ignore_erase(true);
    set_wear(id, place, fault, true);
    later(lasts, [this, id, fault, number] {
        if (devices_.at(id).begun == number) (void)end_fault(id, fault);
    });
    return {};
}

Result<> Fleet::end_fault(const DeviceId& id, DeviceFault fault) {
    const auto found = devices_.find(id);
    if (found == devices_.end()) return fail(ErrorCode::kNotFound, "no device named " + id.value);
    DevicePlace& place = found->second;
    if (fault == DeviceFault::kLinkDown && place.link_down) set_link(id, place, true);
    if (fault == DeviceFault::kEraseFails) place.media->break_erase(false);
    if (fault == DeviceFault::kEraseDoesNothing) place.media->ignore_erase(false);
    set_wear(id, place, fault, false);
    return {};
}

// --- One port ---

void Fleet::show_port(SwitchPlace& place, std::uint8_t port, bool there) {
    const PortConfig* at = place.life->config().port(port);
    if (at != nullptr && at->cascade) {
        if (there)
            place.cables_out.erase(port);
        else
            place.cables_out.insert(port);
        set_cable(*at->cascade, there && place.life->is_on());
    }
    if (at == nullptr || !at->device) return;
    for (Host* host : place.hosts) host->set_device_link(at->device->value, there);
}

// The host of the port where the cable ends reaches everything below over it: the switch there, and what that
// one has cables to.
void Fleet::set_cable(const CascadeConfig& cable, bool there) {
    SwitchPlace& below = switches_.at(cable.below);
    const SwitchConfig& config = below.life->config();
    const HostId& name = *config.port(cable.upstream_port)->host;
    if (const auto host = hosts_.find(name); host != hosts_.end()) {
        host->second->set_path(cable.below, there);
        below.life->set_host_link(name, host->second->reaches(cable.below));
    }
    for (const PortConfig& port : config.ports)
        if (port.cascade && end_of(*port.cascade).host == name)
            set_cable(*port.cascade, there && below.life->is_on() && !below.cables_out.contains(port.id));
}

const PortConfig& Fleet::end_of(const CascadeConfig& cable) const {
    return *switches_.at(cable.below).life->config().port(cable.upstream_port);
}

// What a switch without power had below it is cut off from it, and is there again with it.
void Fleet::set_cables(SwitchPlace& place, bool there) {
    for (const PortConfig& port : place.life->config().ports)
        if (port.cascade) set_cable(*port.cascade, there && !place.cables_out.contains(port.id));
}

void Fleet::set_port_link(const SwitchId& id, std::uint8_t port, bool up) {
    SwitchPlace& place = switches_.at(id);
    const PortConfig* at = place.life->config().port(port);
    if (at != nullptr && at->host) {
        (void)(up ? end_fault(*at->host, HostFault::kLinkDown)
                  : begin_fault(*at->host, HostFault::kLinkDown, std::nullopt));
        return;
    }
    place.life->set_port_link(port, up);
    show_port(place, port, up);
}

void Fleet::set_port_plugged(const SwitchId& id, std::uint8_t port, bool plugged) {
    SwitchPlace& place = switches_.at(id);
    place.life->set_port_plugged(port, plugged);
    show_port(place, port, plugged);
}

void Fleet::heal() {
    for (const auto& [id, host] : hosts_)
        for (std::size_t f = 0; f < kHostFaults; ++f) (void)end_fault(id, static_cast<HostFault>(f));
    for (const auto& [id, place] : devices_) {
        (void)end_fault(id, DeviceFault::kLinkDown);
        (void)end_fault(id, DeviceFault::kEraseFails);
        (void)end_fault(id, DeviceFault::kEraseDoesNothing);
        (void)end_fault(id, DeviceFault::kWorn);
        (void)end_fault(id, DeviceFault::kFailing);
    }
    for (const SwitchId& id : order_) (void)power_on(id);
}

}  // namespace memtide::emul

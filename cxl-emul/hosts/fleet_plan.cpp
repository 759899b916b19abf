#include "cxl-emul/hosts/fleet_plan.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

constexpr std::uint64_t kHostsPerSwitch = 32;
constexpr std::uint64_t kMostHosts = 100'000;
constexpr std::uint64_t kMostPorts = 255;  // ids 0 to 254
constexpr std::uint64_t kMostVppbs = 255;
constexpr std::uint64_t kLargestPort = 65535;
constexpr std::uint64_t kSwitchSerials = 0x4d54535700000000;  // "MTSW"
constexpr std::uint64_t kDeviceSerials = 0x4d54100000000000;
constexpr std::uint64_t kSerialsPerDevice = 0x100;
constexpr std::string_view kUnix = "unix://";

std::unexpected<Error> wrong(std::string message) {
    return fail(ErrorCode::kInvalidArgument, std::move(message));
}

Result<> check_faults(const FleetOptions& options, std::size_t hosts) {
    for (const auto& [fault, share] : options.faults)
        if (fault == HostFault::kWrongCertificate && options.certificates.folder.empty())
            return wrong("a wrong certificate needs certificates: --agent-certs");
        else if (fault == HostFault::kWrongCertificate && hosts < 2)
            return wrong("one host alone has no other whose certificate it could show");
    return {};
}

Result<> check(const FleetOptions& options, std::uint64_t switches) {
    if (options.count < 1 || options.count > kMostHosts)
        return wrong(fmt::format("there can be 1 to {} hosts, not {}", kMostHosts, options.count));
    if (auto good = check_faults(options, options.count); !good) return good;
    if (switches > options.count)
        return wrong(fmt::format("{} switches are more than there are hosts", switches));
    const std::uint64_t hosts_each = (options.count + switches - 1) / switches;
    if (options.devices < 1) return wrong("a switch needs at least one device");
    if (options.devices > kMostPorts || hosts_each + options.devices > kMostPorts)
        return wrong(
            fmt::format("a switch has {} ports: {} hosts and {} devices are too many; use more "
                        "switches",
                        kMostPorts, hosts_each, options.devices));
    if (options.lds < 1 || options.lds > kMaxLds)
        return wrong(fmt::format("an MLD has 1 to {} logical devices, not {}", kMaxLds, options.lds));
    if (options.kind == DeviceKind::kDcd && options.heads > 1) return wrong("a DCD has one head");
    if (options.heads < 1 || options.heads > kMaxHeads)
        return wrong(fmt::format("a device has 1 to {} heads, not {}", kMaxHeads, options.heads));
    if (switches % options.heads != 0)
        return wrong(
            fmt::format("each head of a device is at a switch of its own: {} switches are no multiple "
                        "of {} heads",
                        switches, options.heads));
    if (options.kind == DeviceKind::kMld && options.lds < options.heads)
        return wrong(
            fmt::format("{} logical devices are not one for each of {} heads", options.lds, options.heads));
    if (options.vppbs < 1 || options.vppbs > kMostVppbs)
        return wrong(fmt::format("a host has 1 to {} vPPBs, not {}", kMostVppbs, options.vppbs));
    if (options.ld_size.value == 0 || !options.ld_size.is_multiple_of(kCxlGranule) ||
        options.ld_size > gibibytes(1024))
        return wrong(fmt::format("the size of a logical device is a multiple of {} up to 1TiB, not {}",
                                 format_bytes(kCxlGranule), format_bytes(options.ld_size)));
    return {};
}

Result<Endpoint> endpoint_of(const std::string& listen, std::uint64_t index, std::uint64_t switches) {
    if (listen.starts_with(kUnix)) return parse_endpoint(fmt::format("{}/switch{}.sock", listen, index));
    auto endpoint = parse_endpoint(listen);
    if (!endpoint || endpoint->port == 0) return endpoint;
    if (endpoint->port + switches - 1 > kLargestPort)
        return wrong(fmt::format("{} switches find no ports from {} on", switches, endpoint->port));
    endpoint->port = static_cast<std::uint16_t>(endpoint->port + index);
    return endpoint;
}

DeviceConfig device_of(const FleetOptions& options, std::uint64_t on_switch, std::uint64_t index) {
    DeviceConfig device;
    device.name = DeviceId(fmt::format("dev-{}-{}", on_switch, index));
    device.kind = options.kind;
    device.serial = SerialNumber{kDeviceSerials + (on_switch * options.devices + index) * kSerialsPerDevice};
    device.size = options.ld_size;
    device.heads = static_cast<unsigned>(options.heads);
    if (options.kind == DeviceKind::kSld && options.heads == 1) return device;
    if (options.kind == DeviceKind::kDcd) {
        device.size = options.ld_size * options.lds;
        device.lds.assign(options.lds, Bytes());
        device.regions.push_back({.size = device.size});
        return device;
    }
    const std::uint64_t lds = options.kind == DeviceKind::kSld ? options.heads : options.lds;
    device.size = options.ld_size * lds;
    device.lds.assign(lds, options.ld_size);
    if (options.heads > 1)
        for (std::uint64_t ld = 0; ld < lds; ++ld)
            device.ld_heads.push_back(static_cast<std::uint8_t>(ld * options.heads / lds));
    return device;
}

// What was typed counts more than the file.
void take_time(std::chrono::milliseconds typed, std::chrono::milliseconds& time) {
    if (typed.count() != 0) time = typed;
}

Result<Topology> plan_from_file(const FleetOptions& options) {
    auto topology = load_topology(options.topology);
    if (!topology) return topology;
    for (const HostConfig& host : topology->hosts)
        if (!host.devices.empty() || !host.heads.empty())
            return wrong(
                fmt::format("{0}: {1} has devices of its own, which are there without any switch; emulated "
                            "hosts know only what a switch binds. `memtide rack up {0}` boots it",
                            options.topology, host.name.value));
    const std::vector<HostId> hosts = fleet_hosts(*topology, options);
    if (hosts.empty()) return wrong(fmt::format("{}: no host has a virtual switch (vcss)", options.topology));
    if (auto good = check_faults(options, hosts.size()); !good) return std::unexpected(good.error());
    for (std::size_t s = 0; s < topology->switches.size(); ++s) {
        SwitchConfig& config = topology->switches[s];
        auto endpoint = endpoint_of(options.listen, s, topology->switches.size());
        if (!endpoint)
            return std::unexpected(std::move(endpoint.error()).with_context("where switches listen"));
        config.listen.assign(1, *std::move(endpoint));
        take_time(options.bind_time, config.bind_time);
        take_time(options.unbind_time, config.unbind_time);
        take_time(options.erase_time, config.sanitize_time);
    }
    return topology;
}

}  // namespace

std::vector<HostId> fleet_hosts(const Topology& topology, const FleetOptions& options) {
    std::vector<HostId> hosts;
    if (options.topology.empty()) {
        for (std::uint64_t i = 0; i < options.count; ++i) hosts.emplace_back(fmt::format("host{}", i));
        return hosts;
    }
    for (const HostId& host : all_hosts(topology))
        if (std::ranges::any_of(topology.switches,
                                [&](const SwitchConfig& one) { return one.vcs_of(host) != nullptr; }))
            hosts.push_back(host);
    return hosts;
}

Result<Topology> plan_fleet(const FleetOptions& options) {
    if (!options.topology.empty()) return plan_from_file(options);
    const std::uint64_t wanted = (options.count + kHostsPerSwitch - 1) / kHostsPerSwitch;
    const std::uint64_t switches =
        options.switches != 0 ? options.switches : std::max<std::uint64_t>(wanted, 1);
    if (const auto good = check(options, switches); !good) return std::unexpected(good.error());
    Topology topology;
    topology.name = "emulated";
    for (std::uint64_t s = 0; s < switches; ++s) {
        SwitchConfig config;
        config.name = SwitchId(fmt::format("switch{}", s));
        config.serial = SerialNumber{kSwitchSerials + s};
        auto endpoint = endpoint_of(options.listen, s, switches);
        if (!endpoint)
            return std::unexpected(std::move(endpoint.error()).with_context("where switches listen"));
        config.listen.push_back(*std::move(endpoint));
        config.bind_time = options.bind_time;
        config.unbind_time = options.unbind_time;
        config.sanitize_time = options.erase_time;
        for (std::uint64_t host = s; host < options.count; host += switches) {
            const auto id = static_cast<std::uint8_t>(config.vcss.size());
            config.ports.push_back({id, HostId(fmt::format("host{}", host)), std::nullopt, 0});
            config.vcss.push_back({id, id, static_cast<std::uint8_t>(options.vppbs)});
        }
        const std::uint64_t head = s % options.heads;
        for (std::uint64_t d = 0; d < options.devices; ++d) {
            config.devices.push_back(device_of(options, s - head, d));
            if (options.heads > 1 && head == 0) topology.multi_headed.push_back(config.devices.back());
            config.ports.push_back({static_cast<std::uint8_t>(config.ports.size()), std::nullopt,
                                    config.devices.back().name, static_cast<std::uint8_t>(head)});
        }
        topology.switches.push_back(std::move(config));
    }
    return topology;
}

std::vector<HostFaults> plan_faults(const FleetOptions& options) {
    std::vector<HostFaults> all(options.count);
    Random random(options.seed);
    for (const auto& [fault, share] : options.faults) {
        std::bernoulli_distribution has_it(share);
        for (HostFaults& host : all)
            if (has_it(random)) host.set(fault, true);
    }
    return all;
}

}  // namespace memtide::emul

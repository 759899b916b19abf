#include "cxl-emul/rack/rack_plan.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "cxl-emul/switch/model.h"

namespace memtide::emul {
namespace {

// Room for all memory of the switches that a host is attached to, and never less than a few gigabytes, so
// that regions of every size find a place in a window that has been used in pieces.
Bytes window_size(const std::vector<DirectDevice>& direct, const std::vector<const SwitchConfig*>& switches) {
    Bytes sum;
    for (const auto& device : direct) sum += device.size;
    for (const auto* in : switches) {
        for (const auto& device : in->devices) sum += device.size;
    }
    return std::max(gibibytes(4), gibibytes((2 * sum.value + gibibytes(1).value - 1) / gibibytes(1).value));
}

// What a host has on root ports of its own: devices, and the LDs at its heads of multi-headed ones.
std::vector<DirectDevice> direct_devices(const Topology& topology, const HostConfig& host) {
    std::vector<DirectDevice> direct;
    for (const auto& device : host.devices)
        direct.push_back(
            {device.name.value, topology.media_file(host, device), {}, device.size, device.serial});
    for (const auto& at : host.heads) {
        const auto* config = topology.find_multi_headed(at.device);
        if (config == nullptr) continue;
        const auto device = make_device(*config);
        for (unsigned ld = 0; ld < device->lds.size(); ++ld) {
            const Ld& one = device->lds[ld];
            if (config->is_at_head(ld, at.head) && one.size > Bytes{})
                direct.push_back({fmt::format("{}-{}", at.device.value, ld), topology.media_file(*config),
                                  one.offset, one.size, config->ld_serial(ld)});
        }
    }
    return direct;
}

// The longest path that a unix socket can have.
constexpr std::size_t kLongestSocketPath = 107;

// The host's end of a network: subnet and cards are numbered as the networks are in the file.
NetworkPort network_port(const Topology& topology, std::size_t number, const HostConfig& host,
                         const std::string& hosts_folder) {
    const auto& network = topology.networks[number];
    const bool first = network.hosts[0] == host.name;
    const auto address = [number](bool of_first) {
        return fmt::format("10.77.{}.{}", number, of_first ? 1 : 2);
    };
    NetworkPort port;
    port.name = network.name;
    port.socket = fmt::format("{}/{}/{}.net", hosts_folder, network.hosts[0].value, network.name);
    port.listens = first;
    port.mac = fmt::format("52:54:4d:54:{:02x}:{:02x}", number, first ? 1 : 2);
    port.address = address(first) + "/24";
    port.peer = network.hosts[first ? 1 : 0].value;
    port.peer_address = address(!first);
    return port;
}

Result<> plan_networks(const Topology& topology, const HostConfig& host, const std::string& folder,
                       HostPlan& plan) {
    const auto hosts_folder = folder.substr(0, folder.rfind('/'));
    for (std::size_t n = 0; n < topology.networks.size(); ++n) {
        if (std::ranges::find(topology.networks[n].hosts, host.name) == topology.networks[n].hosts.end())
            continue;
        auto port = network_port(topology, n, host, hosts_folder);
        if (port.socket.size() > kLongestSocketPath)
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("{} is too long for a unix socket; choose a shorter --run-dir", port.socket));
        plan.networks.push_back(std::move(port));
    }
    return {};
}

std::string device_names(const Topology& topology) {
    std::vector<std::string> names;
    for (const auto& in : topology.switches) {
        for (const auto& device : in.devices)
            if (std::ranges::find(names, device.name.value) == names.end())  // heads at several switches
                names.push_back(device.name.value);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

Error no_such_device(const Topology& topology, const std::string& name) {
    for (const auto& host : topology.hosts) {
        const bool is_direct =
            std::ranges::find(host.devices, DeviceId(name), &DirectDeviceConfig::name) !=
                host.devices.end() ||
            std::ranges::find(host.heads, DeviceId(name), &DirectHeadConfig::device) != host.heads.end();
        if (is_direct)
            return {ErrorCode::kInvalidArgument,
                    fmt::format("{} is on a root port of {}, there from power-on: only a device behind a "
                                "switch can be bound",
                                name, host.name.value)};
    }
    const auto names = device_names(topology);
    return {ErrorCode::kNotFound,
            fmt::format("no device named {}; {}", name,
                        names.empty() ? "no switch of this topology has any" : "there is " + names)};
}

}  // namespace

Error no_such_host(const Topology& topology, const std::string& name) {
    std::vector<std::string> names;
    for (const auto& host : topology.hosts) names.push_back(host.name.value);
    return {ErrorCode::kNotFound, fmt::format("no host named {}; there is {}", name, fmt::join(names, ", "))};
}

Result<HostPlan> plan_host(const Topology& topology, const HostConfig& host, const RackSettings& settings,
                           const std::string& folder) {
    HostPlan plan;
    plan.name = host.name.value;
    plan.memory = host.memory;
    plan.cpus = host.cpus;
    plan.accelerator = settings.accelerator;
    plan.kernel = settings.kernel;
    plan.initramfs = settings.initramfs;
    plan.kernel_arguments = settings.kernel_arguments;
    plan.monitor_socket = folder + "/qmp.sock";
    if (plan.monitor_socket.size() > kLongestSocketPath)
        plan.monitor_socket.clear();  // too long for a unix socket
    if (!settings.manager.empty()) plan.relay = {settings.program, "relay", settings.manager};
    std::vector<const SwitchConfig*> attached;
    for (const auto& in : topology.switches) {
        const auto* vcs = in.vcs_of(host.name);
        if (!vcs) continue;
        plan.vcss.push_back({in.name.value, vcs->id, vcs->vppbs});
        attached.push_back(&in);
    }
    plan.direct = direct_devices(topology, host);
    for (const auto& node : host.numa_nodes)
        plan.numa_nodes.push_back({node.size, node.latency_ns, node.bandwidth});
    if (auto planned = plan_networks(topology, host, folder, plan); !planned)
        return std::unexpected(planned.error());
    plan.window = window_size(plan.direct, attached);
    if (auto checked = check_plan(plan); !checked) return std::unexpected(checked.error());
    return plan;
}

namespace {

// A port of a device; one with several heads has several, in one or several switches.
struct DevicePort {
    const SwitchConfig* in = nullptr;
    const PortConfig* port = nullptr;
};

std::vector<DevicePort> ports_of(const Topology& topology, const DeviceId& device) {
    std::vector<DevicePort> found;
    for (const auto& in : topology.switches)
        for (const auto& port : in.ports)
            if (port.device == device) found.push_back({&in, &port});
    return found;
}

std::optional<std::uint16_t> number_in(std::string_view text, std::size_t below) {
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number >= below) return std::nullopt;
    return number;
}

// "mhd0:3, mhd0:4": what the host reaches of the device; empty when that is nothing.
std::string reached_by(const DeviceConfig& device, const std::vector<DevicePort>& ports,
                       const std::string& host) {
    std::string text;
    for (const auto& [in, port] : ports) {
        if (in->vcs_of(HostId(host)) == nullptr) continue;
        for (std::size_t ld = 0; ld < device.lds.size(); ++ld)
            if (device.is_at_head(ld, port->head) && device.lds[ld] > Bytes{})
                text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", device.name.value, ld);
    }
    return text;
}

Result<DevicePlace> at_head(const Topology& topology, const DeviceConfig& device, std::uint16_t ld,
                            const std::string& name, const std::string& host) {
    const auto ports = ports_of(topology, device.name);
    const auto at = std::ranges::find_if(
        ports, [&](const DevicePort& one) { return device.is_at_head(ld, one.port->head); });
    if (at == ports.end())
        return fail(ErrorCode::kConflict, fmt::format("the head of {} is at no port", name));
    const bool sld = device.kind == DeviceKind::kSld;
    const DevicePlace place{at->in, at->port->id, sld ? std::uint16_t{0xffff} : ld};
    if (!device.is_multi_headed() || host.empty() || at->in->vcs_of(HostId(host)) != nullptr) return place;
    const std::string reached = reached_by(device, ports, host);
    return fail(
        ErrorCode::kConflict,
        fmt::format("{} is behind head {} of {}, at port {} of {}, where {} is not attached; {}", name,
                    at->port->head, device.name.value, at->port->id, at->in->name.value, host,
                    reached.empty() ? "no head of the device is where it is" : "it reaches " + reached));
}

// Which head of a multi-headed SLD: one that the host is attached to, else the first.
std::uint16_t head_near(const Topology& topology, const DeviceConfig& device, const std::string& host) {
    const auto ports = ports_of(topology, device.name);
    const auto near = std::ranges::find_if(
        ports, [&](const DevicePort& one) { return one.in->vcs_of(HostId(host)) != nullptr; });
    const std::uint8_t head = near == ports.end() ? ports.front().port->head : near->port->head;
    for (std::uint16_t ld = 0; ld < device.lds.size(); ++ld)
        if (device.is_at_head(ld, head)) return ld;
    return 0;
}

}  // namespace

Result<DevicePlace> find_device(const Topology& topology, const std::string& name, const std::string& host) {
    const auto colon = name.find(':');
    const auto device_name = name.substr(0, colon);
    const auto text = colon == std::string::npos ? std::string() : name.substr(colon + 1);
    for (const auto& in : topology.switches) {
        const auto* device = in.device(DeviceId(device_name));
        if (!device) continue;
        if (ports_of(topology, device->name).empty())
            return fail(ErrorCode::kConflict,
                        fmt::format("{} is on no port of {}", device_name, in.name.value));
        if (device->kind == DeviceKind::kDcd)
            return fail(
                ErrorCode::kConflict,
                fmt::format("{} is a DCD, whose memory the kernels of a rack cannot use", device_name));
        const auto number = number_in(text, device->lds.size());
        if (device->kind == DeviceKind::kMld) {
            if (number) return at_head(topology, *device, *number, name, host);
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("{} is an MLD: give one of its LDs, {}:0 to {}:{}", device_name,
                                    device_name, device_name, device->lds.size() - 1));
        }
        if (colon == std::string::npos)
            return at_head(topology, *device,
                           device->is_multi_headed() ? head_near(topology, *device, host) : std::uint16_t{0},
                           name, host);
        if (!device->is_multi_headed())
            return fail(ErrorCode::kInvalidArgument, fmt::format("{} is an SLD: it has no LDs", device_name));
        if (number) return at_head(topology, *device, *number, name, host);
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} has one LD at each head: give one of {}:0 to {}:{}, or none", device_name,
                                device_name, device_name, device->lds.size() - 1));
    }
    return std::unexpected(no_such_device(topology, device_name));
}

Result<VcsPlace> find_vcs(const Topology& topology, const std::string& host, const SwitchConfig* in) {
    if (!topology.find_host(HostId(host))) return std::unexpected(no_such_host(topology, host));
    std::vector<VcsPlace> found;
    for (const auto& candidate : topology.switches) {
        if (in && in != &candidate) continue;
        if (const auto* vcs = candidate.vcs_of(HostId(host)))
            found.push_back({&candidate, vcs->id, vcs->vppbs});
    }
    if (found.empty()) {
        return fail(ErrorCode::kNotFound,
                    fmt::format("host {} has no VCS in {}", host,
                                in ? "switch " + in->name.value : std::string("any switch")));
    }
    if (found.size() > 1) {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("host {} has a VCS in several switches; say which with --switch", host));
    }
    return found.front();
}

}  // namespace memtide::emul

#include "cxl-emul/switch/topology_picture.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memtide::emul {
namespace {

diagram::Device drawn(const DeviceConfig& config) {
    diagram::Device device;
    device.name = config.name.value;
    device.kind = config.kind == DeviceKind::kMld ? "MLD" : config.kind == DeviceKind::kDcd ? "DCD" : "SLD";
    device.size = config.size;
    device.heads.clear();
    for (unsigned head = 0; head < config.heads; ++head) device.heads.push_back(head);
    if (config.lds.empty()) {
        device.lds.push_back({.name = {}, .size = config.size, .host = {}, .note = {}});
        return device;
    }
    for (std::size_t ld = 0; ld < config.lds.size(); ++ld)
        device.lds.push_back(
            {.name = std::to_string(ld),
             .size = config.lds[ld],
             .use = config.lds[ld] == Bytes{} ? diagram::LdUse::kEmpty : diagram::LdUse::kFree,
             .head = config.is_multi_headed() ? config.ld_heads[ld] : 0U,
             .host = {},
             .note = {}});
    return device;
}

diagram::Switch drawn(const SwitchConfig& config) {
    diagram::Switch one;
    one.name = config.name.value;
    std::vector<std::string> addresses;
    for (const Endpoint& endpoint : config.listen) addresses.push_back(format_endpoint(endpoint));
    one.detail = fmt::format("{}", fmt::join(addresses, " "));
    for (const PortConfig& port : config.ports)
        one.ports.push_back({.id = port.id,
                             .host = port.host ? port.host->value : "",
                             .device = port.device ? port.device->value : "",
                             .head = port.head,
                             .below = port.cascade ? port.cascade->below.value : "",
                             .below_port = port.cascade ? port.cascade->upstream_port : 0U});
    for (const VcsConfig& vcs : config.vcss) {
        diagram::Vcs& added = one.vcss.emplace_back();
        added.id = vcs.id;
        added.upstream_port = vcs.upstream_port;
        for (unsigned vppb = 0; vppb < vcs.vppbs; ++vppb)
            added.vppbs.push_back({.id = vppb, .device = {}, .ld = {}});
    }
    return one;
}

diagram::Host drawn(const Topology& topology, const HostId& name) {
    diagram::Host host;
    host.name = name.value;
    const HostConfig* config = topology.find_host(name);
    if (config == nullptr) return host;
    host.detail =
        fmt::format("{}, {} CPU{}", format_bytes(config->memory), config->cpus, config->cpus == 1 ? "" : "s");
    for (const DirectDeviceConfig& device : config->devices) host.direct.push_back({device.name.value, 0});
    for (const DirectHeadConfig& head : config->heads) host.direct.push_back({head.device.value, head.head});
    return host;
}

// From power-on they have what is on their root ports.
void give_direct_lds(const HostConfig& host, diagram::Fabric& fabric) {
    const auto device_of = [&](const DeviceId& name) {
        return std::ranges::find(fabric.devices, name.value, &diagram::Device::name);
    };
    const auto give = [&](diagram::Ld& ld) {
        if (ld.size == Bytes{}) return;
        ld.use = diagram::LdUse::kBound;
        ld.host = host.name.value;
    };
    for (const DirectDeviceConfig& device : host.devices) {
        diagram::Device& added = fabric.devices.emplace_back();
        added.name = device.name.value;
        added.kind = "SLD";
        added.size = device.size;
        added.lds.push_back({.name = {}, .size = device.size, .host = {}, .note = {}});
        give(added.lds.back());
    }
    for (const DirectHeadConfig& head : host.heads)
        if (const auto device = device_of(head.device); device != fabric.devices.end())
            for (diagram::Ld& ld : device->lds)
                if (ld.head == head.head) give(ld);
}

}  // namespace

diagram::Fabric picture_of(const Topology& topology) {
    diagram::Fabric fabric;
    fabric.title = topology.name;
    for (const HostId& host : all_hosts(topology)) fabric.hosts.push_back(drawn(topology, host));
    for (const SwitchConfig& config : topology.switches) {
        fabric.switches.push_back(drawn(config));
        for (const DeviceConfig& device : config.devices)
            if (!device.is_multi_headed()) fabric.devices.push_back(drawn(device));
    }
    for (const DeviceConfig& device : topology.multi_headed) fabric.devices.push_back(drawn(device));
    for (const HostConfig& host : topology.hosts) give_direct_lds(host, fabric);
    for (const NetworkConfig& network : topology.networks) {
        diagram::Network& added = fabric.networks.emplace_back();
        added.name = network.name;
        for (const HostId& host : network.hosts) added.hosts.push_back(host.value);
    }
    return fabric;
}

}  // namespace memtide::emul

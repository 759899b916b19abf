#include "cxl-emul/switch/topology.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/config/yaml.h"
#include "common/fmapi/commands/pbr_switch.h"
#include "cxl-emul/switch/qos.h"
#include "cxl-emul/switch/topology_check.h"

namespace memtide::emul {
namespace {

constexpr std::uint64_t kMaxId = 254;  // FFh stands for "none" or "all" on the wire
constexpr std::uint64_t kDefaultSwitchSerial = 0x4d54535700000000;  // "MTSW"

std::uint8_t read_id(const YamlValue& value) { return static_cast<std::uint8_t>(value.integer(0, kMaxId)); }

std::chrono::milliseconds read_time(const YamlMap& map, std::string_view key) {
    const auto value = map.get(key);
    return std::chrono::milliseconds(value ? value->milliseconds() : 0);
}

PortConfig read_port(const YamlMap& map) {
    PortConfig port;
    port.id = read_id(map.require("id"));
    if (const auto host = map.get("host")) port.host = HostId(host->name());
    if (const auto device = map.get("device")) {
        port.device = DeviceId(device->name());
        if (port.host)
            device->reject("a port has a host or a device, not both",
                           "make a second port for the device, with an id of its own");
    }
    if (const auto head = map.get("head")) {
        port.head = static_cast<std::uint8_t>(head->integer(0, kMaxHeads - 1));
        if (!port.device)
            head->reject("only a port with a multi-headed device has this",
                         "name the device, as {id: 2, device: mhd0, head: 0}, or take head away");
    }
    if (const auto below = map.get("switch")) {
        port.cascade = {SwitchId(below->name()), read_id(map.require("upstream_port"))};
        if (port.host || port.device) below->reject("a port has a host, a device or a switch");
    }
    return port;
}

VcsConfig read_vcs(const YamlMap& map) {
    VcsConfig vcs;
    vcs.id = read_id(map.require("id"));
    vcs.upstream_port = read_id(map.require("upstream_port"));
    vcs.vppbs = static_cast<std::uint8_t>(map.require("vppbs").integer(1, 255));
    return vcs;
}

DeviceKind read_kind(const YamlValue& value) {
    const std::string text = value.string();
    if (text == "mld") return DeviceKind::kMld;
    if (text == "dcd") return DeviceKind::kDcd;
    if (text != "sld") value.reject(fmt::format("\"{}\" is none of sld, mld and dcd", text));
    return DeviceKind::kSld;
}

Bytes read_granularity(const YamlValue& value) {
    const Bytes granularity = value.bytes();
    for (const Bytes known : {mebibytes(256), mebibytes(512), gibibytes(1)})
        if (granularity == known) return granularity;
    value.reject("granularity must be 256MiB, 512MiB or 1GiB", "leave it out for 256MiB");
    return kCxlGranule;
}

SanitizeEffect read_sanitize(const YamlValue& value) {
    const std::string text = value.string();
    if (text == "does-nothing") return SanitizeEffect::kDoesNothing;
    if (text == "fails") return SanitizeEffect::kFails;
    if (text != "erases") value.reject(fmt::format("\"{}\" is none of erases, does-nothing and fails", text));
    return SanitizeEffect::kErases;
}

// What an MLD, with one head or more, says of its bandwidth.
void read_bandwidth(const YamlMap& map, DeviceConfig& device) {
    if (const auto bandwidth = map.get("bandwidth")) {
        device.bandwidth = bandwidth->bytes();
        if (device.bandwidth.value == 0 || device.bandwidth.value >= kMaxBandwidth)
            bandwidth->reject("a bandwidth is in bytes a second, at least 1B and below 64PiB");
    }
    const auto demands = map.get("demands");
    if (!demands) return;
    for (const YamlValue& demand : demands->list()) device.demands.push_back(demand.bytes());
    if (device.demands.size() > device.lds.size()) {
        demands->reject(
            fmt::format("has {} entries, and there are {} LDs", device.demands.size(), device.lds.size()));
        device.demands.clear();
    }
}

PbrConfig read_pbr(const YamlMap& map) {
    PbrConfig pbr;
    if (const auto drts = map.get("drts")) pbr.drts = static_cast<std::uint8_t>(drts->integer(1, 255));
    if (const auto rgts = map.get("rgts")) pbr.rgts = static_cast<std::uint8_t>(rgts->integer(0, 255));
    if (const auto modes = map.get("routing_modes"))
        for (const YamlValue& mode : modes->list()) {
            const std::string name = mode.string();
            if (name == "random")
                pbr.routing_modes |= fmapi::kRandomRouting;
            else if (name == "congestion-avoidance")
                pbr.routing_modes |= fmapi::kCongestionAvoidance;
            else if (name == "advanced-congestion-avoidance")
                pbr.routing_modes |= fmapi::kAdvancedCongestionAvoidance;
            else
                mode.reject(
                    fmt::format("\"{}\" is none of random, congestion-avoidance and "
                                "advanced-congestion-avoidance",
                                name));
        }
    if (const auto vcss = map.get("gae_vcss"))
        for (const YamlValue& vcs : vcss->list()) pbr.gae_vcss |= std::uint64_t{1} << vcs.integer(0, 63);
    return pbr;
}

DcRegionConfig read_region(const YamlMap& map) {
    DcRegionConfig region;
    region.size = map.require("size").bytes_multiple_of(kCxlGranule);
    if (const auto block = map.get("block")) region.block = block->bytes();
    if (const auto shareable = map.get("shareable")) region.shareable = shareable->boolean();
    if (const auto sanitize = map.get("sanitize")) region.sanitize = sanitize->boolean();
    return region;
}

void read_dynamic_capacity(const YamlMap& map, DeviceConfig& device) {
    for (const char* key : {"size", "granularity", "lds"})
        if (const auto given = map.get(key))
            given->reject("a dcd does not have this: it has hosts, and is as large as its regions");
    device.lds.assign(map.require("hosts").integer(1, kMaxLds), Bytes());
    for (const YamlValue& region : map.require("regions").list()) {
        device.regions.push_back(read_region(region.map()));
        device.size += device.regions.back().size;
    }
    if (const auto extents = map.get("extents"))
        device.max_extents = static_cast<std::uint32_t>(extents->integer(1, kMostDcExtents));
    if (const auto tags = map.get("tags"))
        device.max_tags = static_cast<std::uint32_t>(tags->integer(0, kMostDcExtents));
}

DeviceConfig read_device(const YamlMap& map) {
    DeviceConfig device;
    device.name = DeviceId(map.require("name").name());
    device.kind = read_kind(map.require("kind"));
    device.serial = map.require("serial").serial();
    if (const auto sanitize = map.get("sanitize")) device.sanitize = read_sanitize(*sanitize);
    if (device.kind == DeviceKind::kDcd) {
        read_dynamic_capacity(map, device);
        return device;
    }
    device.size = map.require("size").bytes_multiple_of(kCxlGranule);
    for (const char* key : {"hosts", "regions", "extents", "tags"})
        if (const auto given = map.get(key)) given->reject("only a dcd has this");
    const auto granularity = map.get("granularity");
    const auto lds = map.get("lds");
    if (device.kind == DeviceKind::kSld) {
        for (const auto& key : {granularity, lds, map.get("bandwidth"), map.get("demands")})
            if (key && map.require("kind").is_sound())
                key->reject("only an mld has this", "make the device kind: mld, or take this away");
        return device;
    }
    if (granularity) device.granularity = read_granularity(*granularity);
    for (const YamlValue& ld : map.require("lds").list()) device.lds.push_back(ld.bytes());
    read_bandwidth(map, device);
    return device;
}

// Which head has which LD: those of an SLD are one each, those of an MLD are dealt out in runs by default.
std::vector<std::uint8_t> read_ld_heads(const YamlMap& map, const DeviceConfig& device) {
    std::vector<std::uint8_t> heads;
    const auto listed = map.get("ld_heads");
    if (device.kind == DeviceKind::kSld && listed && map.require("kind").is_sound())
        listed->reject("each head of an sld has one LD, in order", "take ld_heads away");
    if (listed) {
        for (const YamlValue& one : listed->list())
            heads.push_back(static_cast<std::uint8_t>(one.integer(0, device.heads - 1)));
        if (heads.size() != device.lds.size() && map.require("lds").is_sound())
            listed->reject(
                fmt::format("names heads of {} LDs, and there are {}", heads.size(), device.lds.size()),
                "give one head number for each entry of lds, or leave it out to deal them out in runs");
        return heads;
    }
    for (std::size_t ld = 0; ld < device.lds.size(); ++ld)
        heads.push_back(static_cast<std::uint8_t>(ld * device.heads / device.lds.size()));
    return heads;
}

std::string read_media(const YamlValue& value) {
    std::string path = value.string();
    if (!path.starts_with('/')) value.reject("must be the absolute path of a folder");
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

DeviceConfig read_multi_headed(const YamlMap& map) {
    DeviceConfig device;
    device.name = DeviceId(map.require("name").name());
    device.kind = read_kind(map.require("kind"));
    if (device.kind == DeviceKind::kDcd)
        map.require("kind").reject("a dcd has one head: it is one of the devices of a switch");
    device.serial = map.require("serial").serial();
    device.size = map.require("size").bytes_multiple_of(kCxlGranule);
    device.heads = static_cast<unsigned>(map.require("heads").integer(2, kMaxHeads));
    if (const auto granularity = map.get("granularity")) device.granularity = read_granularity(*granularity);
    for (const YamlValue& ld : map.require("lds").list()) device.lds.push_back(ld.bytes());
    device.ld_heads = read_ld_heads(map, device);
    if (const auto media = map.get("media")) device.media = read_media(*media);
    if (device.kind == DeviceKind::kMld) read_bandwidth(map, device);
    return device;
}

// Their heads are at ports of the switches, which know them as theirs from here on.
void give_to_switches(Topology& topology) {
    for (SwitchConfig& config : topology.switches)
        for (const DeviceConfig& device : topology.multi_headed)
            if (std::ranges::find(config.ports, device.name, &PortConfig::device) != config.ports.end())
                config.devices.push_back(device);
}

std::vector<Endpoint> read_endpoints(const YamlValue& value) {
    std::vector<Endpoint> endpoints;
    for (const YamlValue& item : value.list()) {
        auto endpoint = parse_endpoint(item.string());
        if (!endpoint)
            item.reject(endpoint.error().message,
                        "for example tcp://127.0.0.1:2650 or unix:///tmp/switch0.sock");
        // As many as the file has, whatever they are.
        endpoints.push_back(endpoint ? *std::move(endpoint) : Endpoint());
    }
    return endpoints;
}

const fmapi::Dialect* read_dialect(const YamlValue& value) {
    const std::string name = value.string();
    if (const fmapi::Dialect* const found = fmapi::find_dialect(name)) return found;
    value.reject(fmt::format("\"{}\" is none of {}", name, fmapi::dialect_names()));
    return &fmapi::spec_dialect();
}

SwitchConfig read_switch(const YamlMap& map, std::size_t index) {
    SwitchConfig config;
    config.name = SwitchId(map.require("name").name());
    const auto serial = map.get("serial");
    config.serial = serial ? serial->serial() : SerialNumber{kDefaultSwitchSerial + index};
    const auto connect = map.get("connect");
    if (connect) config.connect = read_endpoints(*connect);
    if (const auto listen = map.get("listen"); listen || !connect)
        config.listen = read_endpoints(map.require("listen"));
    if (const auto dialect = map.get("dialect")) config.dialect = read_dialect(*dialect);
    if (const auto media = map.get("media")) config.media = read_media(*media);
    config.bind_time = read_time(map, "bind_time");
    config.unbind_time = read_time(map, "unbind_time");
    config.sanitize_time = read_time(map, "sanitize_time");
    if (const auto pbr = map.get("pbr")) config.pbr = read_pbr(pbr->map());
    for (const YamlValue& port : map.require("ports").list()) config.ports.push_back(read_port(port.map()));
    for (const YamlValue& vcs : map.require("vcss").list()) config.vcss.push_back(read_vcs(vcs.map()));
    for (const YamlValue& device : map.require("devices").list())
        config.devices.push_back(read_device(device.map()));
    return config;
}

DirectDeviceConfig read_direct_device(const YamlMap& map) {
    DirectDeviceConfig device;
    device.name = DeviceId(map.require("name").name());
    device.serial = map.require("serial").serial();
    device.size = map.require("size").bytes_multiple_of(kCxlGranule);
    return device;
}

NumaNodeConfig read_numa_node(const YamlMap& map) {
    NumaNodeConfig node;
    node.size = map.require("size").bytes_multiple_of(mebibytes(1));
    if (const auto latency = map.get("latency_ns"))
        node.latency_ns = static_cast<unsigned>(latency->integer(1, 10'000));
    if (const auto bandwidth = map.get("bandwidth"))
        node.bandwidth = bandwidth->bytes_multiple_of(gibibytes(1));
    return node;
}

std::string read_kernel(const YamlValue& value) {
    std::string kernel = value.string();
    if (kernel.empty() || kernel.find_first_not_of("0123456789.") != std::string::npos ||
        kernel.front() == '.')
        value.reject("must be the version of a kernel", "for example kernel: \"7.3\"");
    return kernel;
}

HostConfig read_host(const YamlMap& map) {
    HostConfig host;
    host.name = HostId(map.require("name").name());
    if (const auto memory = map.get("memory")) host.memory = memory->bytes_multiple_of(mebibytes(1));
    if (const auto cpus = map.get("cpus")) host.cpus = static_cast<unsigned>(cpus->integer(1, 255));
    if (const auto kernel = map.get("kernel")) host.kernel = read_kernel(*kernel);
    if (const auto media = map.get("media")) host.media = read_media(*media);
    if (const auto devices = map.get("devices"))
        for (const YamlValue& device : devices->list())
            host.devices.push_back(read_direct_device(device.map()));
    if (const auto heads = map.get("heads"))
        for (const YamlValue& item : heads->list()) {
            const YamlMap head = item.map();
            host.heads.push_back({DeviceId(head.require("device").name()),
                                  static_cast<std::uint8_t>(head.require("head").integer(0, kMaxHeads - 1))});
        }
    if (const auto nodes = map.get("numa_nodes"))
        for (const YamlValue& node : nodes->list()) host.numa_nodes.push_back(read_numa_node(node.map()));
    return host;
}

NetworkConfig read_network(const YamlMap& map) {
    NetworkConfig network;
    network.name = map.require("name").name();
    for (const YamlValue& host : map.require("hosts").list()) network.hosts.emplace_back(host.name());
    return network;
}

Result<Topology> sound(const YamlDocument& document) {
    Topology topology = read_topology(document);
    if (auto checked = document.check(); !checked) return std::unexpected(checked.error());
    return topology;
}

}  // namespace

Topology read_topology(const YamlDocument& document) {
    const YamlMap root = document.root();
    Topology topology;
    topology.name = root.require("name").name();
    const auto listed = root.get("switches");
    const auto switches = listed ? listed->list() : std::vector<YamlValue>();
    for (std::size_t i = 0; i < switches.size(); ++i)
        topology.switches.push_back(read_switch(switches[i].map(), i));
    if (const auto devices = root.get("multi_headed_devices"))
        for (const YamlValue& device : devices->list())
            topology.multi_headed.push_back(read_multi_headed(device.map()));
    if (const auto hosts = root.get("hosts"))
        for (const YamlValue& host : hosts->list()) topology.hosts.push_back(read_host(host.map()));
    if (const auto networks = root.get("networks"))
        for (const YamlValue& network : networks->list())
            topology.networks.push_back(read_network(network.map()));
    give_to_switches(topology);
    check_topology(root, topology);
    return topology;
}

SerialNumber DeviceConfig::ld_serial(unsigned ld) const {
    return kind == DeviceKind::kSld && heads == 1 ? serial : SerialNumber{serial.value + 1 + ld};
}

bool DeviceConfig::is_at_head(std::size_t ld, std::uint8_t head) const {
    return heads == 1 || ld_heads[ld] == head;
}

const PortConfig* SwitchConfig::port(std::uint8_t id) const {
    const auto found = std::ranges::find(ports, id, &PortConfig::id);
    return found == ports.end() ? nullptr : &*found;
}

const DeviceConfig* SwitchConfig::device(const DeviceId& device_name) const {
    const auto found = std::ranges::find(devices, device_name, &DeviceConfig::name);
    return found == devices.end() ? nullptr : &*found;
}

const VcsConfig* SwitchConfig::vcs_of(const HostId& host) const {
    for (const VcsConfig& vcs : vcss) {
        const PortConfig* upstream = port(vcs.upstream_port);
        if (upstream != nullptr && upstream->host == host) return &vcs;
    }
    return nullptr;
}

const SwitchConfig* Topology::find_switch(const SwitchId& switch_name) const {
    const auto found = std::ranges::find(switches, switch_name, &SwitchConfig::name);
    return found == switches.end() ? nullptr : &*found;
}

const HostConfig* Topology::find_host(const HostId& host) const {
    const auto found = std::ranges::find(hosts, host, &HostConfig::name);
    return found == hosts.end() ? nullptr : &*found;
}

const DeviceConfig* Topology::find_multi_headed(const DeviceId& device) const {
    const auto found = std::ranges::find(multi_headed, device, &DeviceConfig::name);
    return found == multi_headed.end() ? nullptr : &*found;
}

std::string Topology::media_file(const SwitchConfig& in, const DeviceConfig& device) const {
    return fmt::format("{}/memtide-{}-{}.media", device.is_multi_headed() ? device.media : in.media, name,
                       device.name.value);
}

std::string Topology::media_file(const DeviceConfig& multi_headed_device) const {
    return media_file(SwitchConfig(), multi_headed_device);
}

std::string Topology::media_file(const HostConfig& in, const DirectDeviceConfig& device) const {
    return fmt::format("{}/memtide-{}-{}.media", in.media, name, device.name.value);
}

std::vector<HostId> all_hosts(const Topology& topology) {
    std::vector<HostId> hosts;
    std::set<HostId> seen;
    const auto add = [&](const HostId& host) {
        if (seen.insert(host).second) hosts.push_back(host);
    };
    for (const HostConfig& host : topology.hosts) add(host.name);
    for (const SwitchConfig& config : topology.switches)
        for (const PortConfig& port : config.ports)
            if (port.host) add(*port.host);
    return hosts;
}

Result<Topology> load_topology(const std::string& path) {
    auto document = YamlDocument::load(path);
    if (!document) return std::unexpected(document.error());
    return sound(*document);
}

Result<Topology> parse_topology(std::string_view text, std::string name) {
    auto document = YamlDocument::parse(text, std::move(name));
    if (!document) return std::unexpected(document.error());
    return sound(*document);
}

}  // namespace memtide::emul

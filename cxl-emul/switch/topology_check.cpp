#include "cxl-emul/switch/topology_check.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/nearest.h"
#include "cxl-emul/switch/cascade_check.h"
#include "cxl-emul/switch/dynamic_capacity.h"
#include "cxl-emul/switch/topology_claims.h"

namespace memtide::emul {
namespace {

using Names = std::set<std::string, std::less<>>;

bool are_sound(const std::vector<YamlValue>& values) {
    return std::ranges::all_of(values, &YamlValue::is_sound);
}

// The items of a list that may be left out.
std::vector<YamlValue> items_of(const YamlMap& map, std::string_view key) {
    const auto list = map.get(key);
    return list ? list->list() : std::vector<YamlValue>();
}

// Whether nothing is wrong with that key of any of the list's maps, nor with the list.
bool say_soundly(const YamlValue& list, std::string_view key) {
    return list.is_sound() && std::ranges::all_of(list.list(), [&](const YamlValue& item) {
               const auto value = item.map().get(key);
               return item.is_sound() && (!value || value->is_sound());
           });
}

// "did you mean" for a name, or what there is.
std::string advice_for(const std::string& name, const Names& known, std::string_view where) {
    if (known.empty()) return fmt::format("add it {}", where);
    if (const auto nearest = nearest_name(name, known); !nearest.empty())
        return fmt::format("did you mean {}? Else add it {}", nearest, where);
    return fmt::format("there is {}; or add it {}", fmt::join(known, ", "), where);
}

std::string head_text(const DeviceId& device, unsigned head) {
    return fmt::format("head {} of device {}", head, device.value);
}

// Devices and their LDs: what is true of them wherever they are.
void check_lds(const YamlMap& map, const DeviceConfig& device) {
    const YamlValue lds = map.require("lds");
    const std::vector<YamlValue> items = lds.list();
    const auto granularity = map.get("granularity");
    if (!lds.is_sound() || (granularity && !granularity->is_sound())) return;
    if (items.empty() || items.size() > kMaxLds)
        lds.reject(fmt::format("an mld has 1 to {} LDs, this has {}", kMaxLds, items.size()),
                   "give each LD its size, 0 for one that has nothing yet: lds: [256MiB, 256MiB, 0, 0]");
    const YamlValue size_value = map.require("size");
    const std::string grain = format_bytes(device.granularity);
    if (size_value.is_sound() && !device.size.is_multiple_of(device.granularity))
        size_value.reject(
            fmt::format("{} is not a multiple of the granularity {}", format_bytes(device.size), grain),
            "round it, or choose a smaller granularity");
    Bytes left = device.size;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Bytes size = device.lds[i];
        if (!size.is_multiple_of(device.granularity))
            items[i].reject(
                fmt::format("{} is not a multiple of the granularity {}", format_bytes(size), grain),
                fmt::format("0 for none, or a multiple of {}", grain));
        if (!size_value.is_sound() || !items[i].is_sound()) return;  // the sum says nothing then
        if (size > left) {
            items[i].reject(fmt::format("LD {} takes {} and {} of {} are left", i, format_bytes(size),
                                        format_bytes(left), format_bytes(device.size)),
                            "make the LDs smaller or the device larger");
            return;
        }
        left -= size;
    }
}

class Checker {
  public:
    Checker(const YamlMap& root, const Topology& topology) : root_(root), topology_(topology) {}

    void run() {
        const auto switches = root_.get("switches");
        const auto hosts = root_.get("hosts");
        const std::vector<YamlValue> items = items_of(root_, "switches");
        if (items.empty() && topology_.hosts.empty() && (!switches || switches->is_sound()) &&
            (!hosts || hosts->is_sound()))
            root_.reject("a topology has at least one switch, or hosts with devices of their own",
                         "config/topologies has some to start from");
        const std::vector<YamlValue> host_items = items_of(root_, "hosts");
        hosts_are_listed_ = hosts && say_soundly(*hosts, "name");
        for (std::size_t i = 0; i < host_items.size(); ++i)
            check_host(host_items[i].map(), topology_.hosts[i]);
        const std::vector<YamlValue> multi_headed = items_of(root_, "multi_headed_devices");
        for (std::size_t i = 0; i < multi_headed.size(); ++i)
            check_multi_headed(multi_headed[i].map(), topology_.multi_headed[i]);
        for (std::size_t i = 0; i < items.size(); ++i) check_switch(items[i].map(), topology_.switches[i]);
        for (std::size_t i = 0; i < host_items.size(); ++i)
            check_direct_heads(host_items[i].map(), topology_.hosts[i]);
        for (std::size_t i = 0; i < multi_headed.size(); ++i)
            check_every_head_is_somewhere(multi_headed[i].map(), topology_.multi_headed[i]);
        check_networks();
        for (std::size_t i = 0; i < host_items.size(); ++i)
            remark_lonely_host(host_items[i].map(), topology_.hosts[i]);
    }

  private:
    void check_host(const YamlMap& map, const HostConfig& host) {
        host_names_.claim(host.name.value, map.require("name"));
        known_hosts_.insert(host.name.value);
        const std::vector<YamlValue> items = items_of(map, "devices");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const DirectDeviceConfig& device = host.devices[i];
            const YamlMap item = items[i].map();
            device_names_.claim(device.name.value, item.require("name"));
            serials_.claim(device.serial, 1, "device " + device.name.value, item.require("serial"));
        }
        if (host.numa_nodes.size() > kMaxNumaNodes)
            map.require("numa_nodes")
                .reject(fmt::format("a host has at most {} NUMA nodes beside its own", kMaxNumaNodes));
    }

    void check_switch(const YamlMap& map, const SwitchConfig& config) {
        switch_names_.claim(config.name.value, map.require("name"));
        if (const auto serial = map.get("serial"))
            serials_.claim(config.serial, 1, "switch " + config.name.value, *serial);
        if (const auto listen = map.get("listen")) check_listen(*listen, config);
        if (const auto connect = map.get("connect"); connect && config.connect.empty())
            connect->reject("a switch that connects has somewhere to connect to: tcp://127.0.0.1:2651");
        check_devices(map.require("devices").list(), config);
        check_ports(map, config);
        check_vcss(map.require("vcss"), map.require("ports"), config);
        check_every_device_has_a_port(map, config);
    }

    void check_multi_headed(const YamlMap& map, const DeviceConfig& device) {
        device_names_.claim(device.name.value, map.require("name"));
        serials_.claim(device.serial, 1 + device.lds.size(), "device " + device.name.value,
                       map.require("serial"));
        check_lds(map, device);
        const YamlValue lds = map.require("lds");
        if (device.kind == DeviceKind::kSld && device.lds.size() != device.heads &&
            are_sound({lds, map.require("heads"), map.require("kind")}))
            lds.reject(fmt::format("an sld with {} heads has as many LDs, this has {}", device.heads,
                                   device.lds.size()),
                       "give each head its size");
    }

    void check_every_head_is_somewhere(const YamlMap& map, const DeviceConfig& device) {
        const YamlValue name = map.require("name");
        if (!places_are_sound_ || !map.require("heads").is_sound()) return;
        for (unsigned head = 0; head < device.heads; ++head)
            if (!heads_.has(head_text(device.name, head)))
                name.reject(fmt::format("no port has {}", head_text(device.name, head)),
                            fmt::format("add {{id: N, device: {0}, head: {1}}} to the ports of a switch, or "
                                        "heads: [{{device: {0}, head: {1}}}] to a host",
                                        device.name.value, head));
    }

    void check_listen(const YamlValue& listen, const SwitchConfig& config) {
        const std::vector<YamlValue> items = listen.list();
        if (items.empty() && listen.is_sound())
            listen.reject("a switch listens somewhere: tcp://127.0.0.1:2650 or unix:///PATH");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const Endpoint& endpoint = config.listen[i];
            if (endpoint.kind == Endpoint::Kind::kTcp && endpoint.port == 0) continue;  // any free one
            endpoints_.claim(format_endpoint(endpoint), items[i]);
        }
    }

    void check_devices(const std::vector<YamlValue>& items, const SwitchConfig& config) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlMap map = items[i].map();
            const DeviceConfig& device = config.devices[i];
            // Across switches too: the name is part of the media file's name, and the manager's id.
            device_names_.claim(device.name.value, map.require("name"));
            serials_.claim(device.serial, 1 + device.lds.size(), "device " + device.name.value,
                           map.require("serial"));
            if (device.kind == DeviceKind::kMld) check_lds(map, device);
            if (device.kind == DeviceKind::kDcd) check_regions(map.require("regions"), device);
        }
    }

    static void check_regions(const YamlValue& regions, const DeviceConfig& device) {
        const std::vector<YamlValue> items = regions.list();
        if (items.empty() || items.size() > fmapi::kMaxDcRegions)
            regions.reject(
                fmt::format("a dcd has 1 to {} regions, this has {}", fmapi::kMaxDcRegions, items.size()));
        for (std::size_t i = 0; i < items.size(); ++i) {
            const DcRegionConfig& region = device.regions[i];
            if (region.size == Bytes()) items[i].reject("a region has some memory");
            if (region.block.value < kSmallestDcBlock || !std::has_single_bit(region.block.value) ||
                !region.size.is_multiple_of(region.block))
                items[i].reject(fmt::format(
                    "block {}: must be a power of two, {} or more, that divides the region's size {}",
                    format_bytes(region.block), format_bytes({kSmallestDcBlock}), format_bytes(region.size)));
        }
    }

    void check_ports(const YamlMap& in, const SwitchConfig& config) {
        const YamlValue ports = in.require("ports");
        const std::vector<YamlValue> items = ports.list();
        if (items.empty() && ports.is_sound())
            ports.reject("a switch has at least one port", "for example ports: [{id: 0, host: host0}]");
        places_are_sound_ = places_are_sound_ && ports.is_sound();
        Claims ids("port", "each port has an id of its own: " + free_id(config.ports, &PortConfig::id));
        Claims hosts("a port of host", "a host has one port in each switch");
        Claims devices("a port of device",
                       "one port for each device; those with several heads are under multi_headed_devices");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlMap map = items[i].map();
            const PortConfig& port = config.ports[i];
            ids.claim(std::to_string(port.id), map.require("id"));
            if (port.host && !port.device) check_host_port(map.require("host"), *port.host, hosts);
            if (port.device) check_device_port(in, map, config, port, devices);
        }
    }

    void check_host_port(const YamlValue& at, const HostId& host, Claims& hosts) {
        hosts.claim(host.value, at);
        attached_.insert(host.value);
        if (at.is_sound() && hosts_are_listed_ && !host_names_.has(host.value))
            at.reject(fmt::format("there is no host \"{}\" under hosts", host.value),
                      advice_for(host.value, known_hosts_, "under hosts"));
    }

    void check_device_port(const YamlMap& in, const YamlMap& map, const SwitchConfig& config,
                           const PortConfig& port, Claims& devices) {
        const YamlValue at = map.require("device");
        const DeviceConfig* device = config.device(*port.device);
        places_are_sound_ = places_are_sound_ && at.is_sound();
        if (device == nullptr && at.is_sound() && say_soundly(in.require("devices"), "name")) {
            Names known;
            for (const DeviceConfig& one : config.devices) known.insert(one.name.value);
            for (const DeviceConfig& one : topology_.multi_headed) known.insert(one.name.value);
            at.reject(fmt::format("there is no device \"{}\" under devices of {}, nor under "
                                  "multi_headed_devices",
                                  port.device->value, config.name.value),
                      advice_for(port.device->value, known, "under devices of " + config.name.value));
        }
        if (device != nullptr && device->is_multi_headed()) {
            check_head(map.require("head"), *device, port.head, true);
            return;
        }
        devices.claim(port.device->value, at);
        if (const auto head = map.get("head"); head && device != nullptr)
            head->reject(fmt::format("device \"{}\" is not under multi_headed_devices", port.device->value),
                         "take head away, or move the device there");
    }

    // At a port of a switch, or in a host.
    void check_head(const YamlValue& at, const DeviceConfig& device, std::uint8_t head, bool at_a_port) {
        heads_.claim(head_text(device.name, head), at);
        if (head >= device.heads)
            at.reject(fmt::format("device \"{}\" has heads 0 to {}", device.name.value, device.heads - 1),
                      "or give the device more: heads");
        (at_a_port ? at_ports_ : at_hosts_).insert(device.name.value);
        // A switch carves LDs out of the device while hosts would keep what they got at power-on.
        if (at_ports_.contains(device.name.value) && at_hosts_.contains(device.name.value))
            at.reject(
                fmt::format("device \"{}\" has heads at ports of switches, and in hosts", device.name.value),
                "have all of them at switches, or all of them in hosts");
        places_are_sound_ = places_are_sound_ && at.is_sound();
    }

    void check_direct_heads(const YamlMap& map, const HostConfig& host) {
        const std::vector<YamlValue> items = items_of(map, "heads");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlValue at = items[i].map().require("device");
            const DirectHeadConfig& head = host.heads[i];
            const DeviceConfig* device = topology_.find_multi_headed(head.device);
            places_are_sound_ = places_are_sound_ && at.is_sound();
            if (device != nullptr) {
                check_head(items[i].map().require("head"), *device, head.head, false);
                continue;
            }
            Names known;
            for (const DeviceConfig& one : topology_.multi_headed) known.insert(one.name.value);
            if (at.is_sound())
                at.reject(
                    fmt::format("there is no device \"{}\" under multi_headed_devices", head.device.value),
                    advice_for(head.device.value, known, "there, or under devices of this host"));
        }
    }

    static void check_vcss(const YamlValue& vcss, const YamlValue& ports, const SwitchConfig& config) {
        const std::vector<YamlValue> items = vcss.list();
        Claims ids("VCS", "each VCS has an id of its own: " + free_id(config.vcss, &VcsConfig::id));
        Claims upstream("a VCS with upstream port", "a host sees one VCS through its port");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlMap map = items[i].map();
            const VcsConfig& vcs = config.vcss[i];
            ids.claim(std::to_string(vcs.id), map.require("id"));
            const YamlValue at = map.require("upstream_port");
            upstream.claim(std::to_string(vcs.upstream_port), at);
            const PortConfig* port = config.port(vcs.upstream_port);
            if (!at.is_sound() || !say_soundly(ports, "id")) continue;
            if (port == nullptr)
                at.reject(fmt::format("there is no port {}", vcs.upstream_port),
                          "the id of a port that has a host");
            else if (!port->host)
                at.reject(fmt::format("port {} is not an upstream port: it has no host", vcs.upstream_port),
                          "give the port a host, or name one that has");
        }
        remark_ports_without_vcs(ports.list(), config);
    }

    static void remark_ports_without_vcs(const std::vector<YamlValue>& items, const SwitchConfig& config) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            const PortConfig& port = config.ports[i];
            if (!port.host ||
                std::ranges::find(config.vcss, port.id, &VcsConfig::upstream_port) != config.vcss.end())
                continue;
            items[i].map().require("host").remark(
                fmt::format("{} sees nothing behind port {}: it is the upstream port of no VCS",
                            port.host->value, port.id),
                fmt::format("add {{id: N, upstream_port: {}, vppbs: 4}} to vcss", port.id));
        }
    }

    static void check_every_device_has_a_port(const YamlMap& map, const SwitchConfig& config) {
        const std::vector<YamlValue> items = map.require("devices").list();
        // A port with a wrong name is probably the one that is missed.
        if (!say_soundly(map.require("ports"), "device")) return;
        for (std::size_t i = 0; i < items.size(); ++i)
            if (std::ranges::find(config.ports, config.devices[i].name, &PortConfig::device) ==
                config.ports.end())
                items[i].map().require("name").reject(
                    fmt::format("no port has device \"{}\"", config.devices[i].name.value),
                    fmt::format("add {{id: {}, device: {}}} to ports",
                                first_free(config.ports, &PortConfig::id), config.devices[i].name.value));
    }

    void check_networks() {
        const std::vector<YamlValue> items = items_of(root_, "networks");
        if (items.size() > kMaxNetworks)
            root_.get("networks")->reject(fmt::format("there can be {} networks at most", kMaxNetworks));
        Claims names("network", "each network has a name of its own");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlMap map = items[i].map();
            const NetworkConfig& network = topology_.networks[i];
            const YamlValue name = map.require("name");
            names.claim(network.name, name);
            if (network.name.size() > kLongestInterfaceName || network.name == "lo" || network.name == "eth0")
                name.reject(
                    fmt::format("\"{}\" cannot be the name of a network interface", network.name),
                    fmt::format("1 to {} characters, and neither lo nor eth0: rdma0", kLongestInterfaceName));
            check_network_hosts(map.require("hosts"), network);
        }
    }

    void check_network_hosts(const YamlValue& hosts, const NetworkConfig& network) {
        const std::vector<YamlValue> items = hosts.list();
        if (items.size() != 2 && hosts.is_sound())
            hosts.reject(fmt::format("a network connects two hosts, not {}", items.size()),
                         "for more hosts, make a network for each two: a host may be in several");
        Claims ends(fmt::format("network {} of host", network.name), "a network connects two hosts");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const std::string& host = network.hosts[i].value;
            ends.claim(host, items[i]);
            attached_.insert(host);
            if (items[i].is_sound() && (hosts_are_listed_ || topology_.hosts.empty()) &&
                !host_names_.has(host))
                items[i].reject(fmt::format("there is no host \"{}\" under hosts", host),
                                advice_for(host, known_hosts_, "under hosts"));
        }
    }

    void remark_lonely_host(const YamlMap& map, const HostConfig& host) const {
        if (attached_.contains(host.name.value) || !host.devices.empty() || !host.heads.empty() ||
            !host.numa_nodes.empty())
            return;
        map.require("name").remark(
            fmt::format("{} is connected to nothing", host.name.value),
            fmt::format("give it a port of a switch ({{id: N, host: {}}}) or devices of its own",
                        host.name.value));
    }

    // The smallest number that none of them has.
    template <typename Item>
    static unsigned first_free(const std::vector<Item>& items, std::uint8_t Item::* id) {
        unsigned free = 0;
        while (std::ranges::find(items, free, id) != items.end()) ++free;
        return free;
    }
    template <typename Item>
    static std::string free_id(const std::vector<Item>& items, std::uint8_t Item::* id) {
        return fmt::format("{} is free", first_free(items, id));
    }

    const YamlMap& root_;
    const Topology& topology_;
    Claims switch_names_{"switch", "each switch has a name of its own"};
    Claims host_names_{"host", "each host has a name of its own"};
    Claims device_names_{"device", "each device of a file has a name of its own, whatever switch it is at"};
    Claims endpoints_{"a listener at", "each listener has an address of its own; port 0 is any free one"};
    Claims heads_{"a port of", "each head is at one port, or in one host"};
    SerialClaims serials_;
    Names known_hosts_;
    Names attached_;
    Names at_ports_;  // multi-headed devices with heads there
    Names at_hosts_;
    bool hosts_are_listed_ = false;
    bool places_are_sound_ = true;  // nothing is wrong with who is at which port
};

}  // namespace

void check_topology(const YamlMap& root, const Topology& topology) {
    Checker(root, topology).run();
    check_cascades(root, topology);
}

}  // namespace memtide::emul

#include "cxl-emul/switch/topology_check.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

// Remembers who took a name, and refuses it to the next.
class Claims {
  public:
    explicit Claims(std::string what) : what_(std::move(what)) {}

    void claim(const std::string& key, const YamlValue& at) {
        const auto [owner, is_new] = owners_.try_emplace(key, at.where());
        if (!is_new) at.reject(fmt::format("{} {} is there already, at {}", what_, key, owner->second));
    }
    [[nodiscard]] bool has(const std::string& key) const { return owners_.contains(key); }

  private:
    std::string what_;
    std::map<std::string, std::string> owners_;  // and where they stand
};

// A device claims its own serial number and those of all LDs it could have, so ranges must not touch.
struct SerialRange {
    std::uint64_t first;
    std::uint64_t last;
    std::string owner;
};

class Checker {
  public:
    Checker(const YamlMap& root, const Topology& topology) : root_(root), topology_(topology) {}

    void run() {
        const auto switches = root_.get("switches");
        const auto items = switches ? switches->list() : std::vector<YamlValue>();
        const auto hosts = root_.get("hosts");
        if (items.empty() && topology_.hosts.empty())
            root_.reject("a topology has at least one switch, or hosts with devices of their own");
        if (hosts) check_hosts(hosts->list());
        const auto multi_headed = root_.get("multi_headed_devices");
        if (multi_headed) check_multi_headed(multi_headed->list());
        for (std::size_t i = 0; i < items.size(); ++i)
            check_switch(items[i].map(), topology_.switches[i], hosts.has_value());
        if (multi_headed) check_every_head_has_a_port(multi_headed->list());
    }

  private:
    void check_hosts(const std::vector<YamlValue>& items) {
        for (std::size_t i = 0; i < items.size(); ++i) check_host(items[i].map(), topology_.hosts[i]);
    }

    void check_host(const YamlMap& map, const HostConfig& host) {
        host_names_.claim(host.name.value, map.require("name"));
        if (host.devices.empty()) return;
        const std::vector<YamlValue> items = map.require("devices").list();
        for (std::size_t i = 0; i < items.size(); ++i) {
            const DirectDeviceConfig& device = host.devices[i];
            device_names_.claim(device.name.value, items[i].map().require("name"));
            claim_serials(device.serial, 1, "device " + device.name.value, items[i].map().require("serial"));
        }
    }

    void check_switch(const YamlMap& map, const SwitchConfig& config, bool hosts_are_listed) {
        switch_names_.claim(config.name.value, map.require("name"));
        if (const auto serial = map.get("serial"))
            claim_serials(config.serial, 1, "switch " + config.name.value, *serial);
        if (const auto listen = map.get("listen")) check_listen(*listen, config);
        check_devices(map.require("devices").list(), config);
        check_ports(map.require("ports"), config, hosts_are_listed);
        check_vcss(map.require("vcss"), config);
        check_every_device_has_a_port(map.require("devices").list(), config);
    }

    void check_multi_headed(const std::vector<YamlValue>& items) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlMap map = items[i].map();
            const DeviceConfig& device = topology_.multi_headed[i];
            device_names_.claim(device.name.value, map.require("name"));
            claim_serials(device.serial, 1 + device.lds.size(), "device " + device.name.value,
                          map.require("serial"));
            check_lds(map, device);
            if (device.kind == DeviceKind::kSld && device.lds.size() != device.heads)
                map.require("lds").reject(fmt::format("an sld with {} heads has as many LDs, this has {}",
                                                      device.heads, device.lds.size()));
        }
    }

    void check_every_head_has_a_port(const std::vector<YamlValue>& items) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            const DeviceConfig& device = topology_.multi_headed[i];
            for (unsigned head = 0; head < device.heads; ++head)
                if (!heads_.has(head_text(device.name, head)))
                    items[i].map().require("name").reject(
                        fmt::format("no port has {}", head_text(device.name, head)));
        }
    }

    static std::string head_text(const DeviceId& device, unsigned head) {
        return fmt::format("head {} of device {}", head, device.value);
    }

    void check_listen(const YamlValue& listen, const SwitchConfig& config) {
        const std::vector<YamlValue> items = listen.list();
        if (items.empty()) listen.reject("a switch listens somewhere: tcp://127.0.0.1:2650 or unix:///PATH");
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
            claim_serials(device.serial, 1 + device.lds.size(), "device " + device.name.value,
                          map.require("serial"));
            if (device.kind == DeviceKind::kMld) check_lds(map, device);
        }
    }

    void claim_serials(SerialNumber first, std::uint64_t count, std::string owner, const YamlValue& at) {
        if (first.value > UINT64_MAX - (count - 1)) {
            at.reject("leaves no room for the serial numbers of the LDs, which follow it");
            return;
        }
        const SerialRange range{first.value, first.value + count - 1, std::move(owner)};
        for (const SerialRange& other : serials_)
            if (range.first <= other.last && other.first <= range.last)
                at.reject(
                    fmt::format("serial numbers {} to {} meet those of {}, {} to {}; an mld takes one "
                                "more for each LD",
                                format_serial({range.first}), format_serial({range.last}), other.owner,
                                format_serial({other.first}), format_serial({other.last})));
        serials_.push_back(range);
    }

    static void check_lds(const YamlMap& map, const DeviceConfig& device) {
        const YamlValue lds = map.require("lds");
        const std::vector<YamlValue> items = lds.list();
        if (items.empty() || items.size() > kMaxLds)
            lds.reject(fmt::format("an mld has 1 to {} LDs, this has {}", kMaxLds, items.size()));
        if (!device.size.is_multiple_of(device.granularity))
            map.require("size").reject(fmt::format("{} is not a multiple of the granularity {}",
                                                   format_bytes(device.size),
                                                   format_bytes(device.granularity)));
        Bytes left = device.size;
        for (std::size_t i = 0; i < items.size(); ++i) {
            const Bytes size = device.lds[i];
            if (!size.is_multiple_of(device.granularity))
                items[i].reject(fmt::format("{} is not a multiple of the granularity {}", format_bytes(size),
                                            format_bytes(device.granularity)));
            if (size > left) {
                items[i].reject(fmt::format("LD {} takes {} and {} of {} are left", i, format_bytes(size),
                                            format_bytes(left), format_bytes(device.size)));
                return;
            }
            left -= size;
        }
    }

    void check_ports(const YamlValue& ports, const SwitchConfig& config, bool hosts_are_listed) {
        const std::vector<YamlValue> items = ports.list();
        if (items.empty()) ports.reject("a switch has at least one port");
        Claims ids("port");
        Claims hosts("a port of host");
        Claims devices("a port of device");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlMap map = items[i].map();
            const PortConfig& port = config.ports[i];
            ids.claim(std::to_string(port.id), map.require("id"));
            if (port.host) {
                const YamlValue at = map.require("host");
                hosts.claim(port.host->value, at);
                if (hosts_are_listed && !host_names_.has(port.host->value))
                    at.reject(fmt::format("there is no host \"{}\" under hosts", port.host->value));
            }
            if (port.device) {
                const YamlValue at = map.require("device");
                const DeviceConfig* device = config.device(*port.device);
                if (device == nullptr)
                    at.reject(
                        fmt::format("there is no device \"{}\" under devices of {}, nor under "
                                    "multi_headed_devices",
                                    port.device->value, config.name.value));
                if (device != nullptr && device->is_multi_headed())
                    check_head(map, port, *device);
                else
                    check_has_no_head(map, devices, port);
            }
        }
    }

    static void check_has_no_head(const YamlMap& map, Claims& devices, const PortConfig& port) {
        devices.claim(port.device->value, map.require("device"));
        if (const auto head = map.get("head"))
            head->reject(fmt::format("device \"{}\" is not under multi_headed_devices", port.device->value));
    }

    void check_head(const YamlMap& map, const PortConfig& port, const DeviceConfig& device) {
        const YamlValue at = map.require("head");
        heads_.claim(head_text(device.name, port.head), at);
        if (port.head >= device.heads)
            at.reject(fmt::format("device \"{}\" has heads 0 to {}", device.name.value, device.heads - 1));
    }

    static void check_vcss(const YamlValue& vcss, const SwitchConfig& config) {
        const std::vector<YamlValue> items = vcss.list();
        Claims ids("VCS");
        Claims upstream("a VCS with upstream port");
        for (std::size_t i = 0; i < items.size(); ++i) {
            const YamlMap map = items[i].map();
            const VcsConfig& vcs = config.vcss[i];
            ids.claim(std::to_string(vcs.id), map.require("id"));
            const YamlValue at = map.require("upstream_port");
            upstream.claim(std::to_string(vcs.upstream_port), at);
            const PortConfig* port = config.port(vcs.upstream_port);
            if (port == nullptr)
                at.reject(fmt::format("there is no port {}", vcs.upstream_port));
            else if (!port->host)
                at.reject(fmt::format("port {} is not an upstream port: it has no host", vcs.upstream_port));
        }
    }

    static void check_every_device_has_a_port(const std::vector<YamlValue>& items,
                                              const SwitchConfig& config) {
        for (std::size_t i = 0; i < items.size(); ++i)
            if (std::ranges::find(config.ports, config.devices[i].name, &PortConfig::device) ==
                config.ports.end())
                items[i].map().require("name").reject(
                    fmt::format("no port has device \"{}\"", config.devices[i].name.value));
    }

    const YamlMap& root_;
    const Topology& topology_;
    Claims switch_names_{"switch"};
    Claims host_names_{"host"};
    Claims device_names_{"device"};
    Claims endpoints_{"a listener at"};
    Claims heads_{"a port of"};
    std::vector<SerialRange> serials_;
};

}  // namespace

void check_topology(const YamlMap& root, const Topology& topology) { Checker(root, topology).run(); }

}  // namespace memtide::emul

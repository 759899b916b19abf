#include "fabric-manager/app/config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include "common/fmapi/dialect.h"
#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/client.h"

namespace memtide::fm {
namespace {

// The port behind "host:" of host:port; nothing when it is none.
std::optional<unsigned> port_of(std::string_view text) {
    unsigned port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc{} || end != text.data() + text.size() || port > 65535) return std::nullopt;
    return port;
}

// "127.0.0.1:8080" and "[::1]:8080" in two.
std::optional<std::pair<std::string, unsigned>> split_host_port(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    const auto port = port_of(text.substr(colon + 1));
    std::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos)
        return std::nullopt;
    if (!port) return std::nullopt;
    return std::pair{std::string(host), *port};
}

// What is wrong with the address of a switch; empty when nothing is.
std::string switch_address_mistake(std::string_view address) {
    constexpr std::string_view kTcp = "tcp://";
    constexpr std::string_view kUnix = "unix://";
    if (address.starts_with(kTcp)) {
        const auto parts = split_host_port(address.substr(kTcp.size()));
        if (parts && parts->second != 0) return {};
        return fmt::format("\"{}\" must have a host and a port, as in tcp://127.0.0.1:2650", address);
    }
    if (address.starts_with(kUnix)) {
        if (address.size() > kUnix.size() + 1 && address[kUnix.size()] == '/') return {};
        return fmt::format("\"{}\" must have an absolute path, as in unix:///run/memtide/switch0.sock",
                           address);
    }
    if (address.starts_with("cxl://") || address.starts_with("mctp://")) {
        const auto parsed = parse_switch_address(address);
        return parsed ? std::string() : parsed.error().message;
    }
    return fmt::format("\"{}\" must begin with tcp://, unix://, cxl:// or mctp://", address);
}

void read_duration(const YamlMap& map, std::string_view key, Milliseconds& value, bool may_be_zero = false) {
    const auto given = map.get(key);
    if (!given) return;
    value = Milliseconds(given->milliseconds());
    if (value.count() == 0 && !may_be_zero) given->reject("must be longer than 0ms");
}

void read_count(const YamlMap& map, std::string_view key, std::uint64_t min, std::size_t& value) {
    if (const auto given = map.get(key)) value = given->integer(min, 100'000'000);
}

void read_timing(const YamlMap& map, AppConfig& config) {
    ManagerTiming& timing = config.manager.timing;
    read_duration(map, "drain_deadline", timing.drain_deadline);
    read_duration(map, "exchange_deadline", timing.exchange_deadline);
    read_duration(map, "switch_poll", timing.switch_poll);
    read_duration(map, "retry_min", timing.retry_min);
    read_duration(map, "retry_max", timing.retry_max);
    read_duration(map, "background_poll_min", timing.background_poll_min);
    read_duration(map, "background_poll_max", timing.background_poll_max);
    read_duration(map, "background_timeout", timing.background_timeout);
    read_duration(map, "quarantine_retry", timing.quarantine_retry);
    read_duration(map, "gone_after", timing.gone_after);
    read_duration(map, "health_poll", timing.health_poll);
    read_count(map, "readers", 1, timing.readers);
    read_duration(map, "connect_timeout", config.connect_timeout);
    read_duration(map, "command_timeout", config.command_timeout);
    read_duration(map, "shutdown_grace", config.shutdown_grace, true);
    if (timing.retry_max < timing.retry_min) map.reject("retry_max must not be shorter than retry_min");
    if (timing.background_poll_max < timing.background_poll_min)
        map.reject("background_poll_max must not be shorter than background_poll_min");
}

void read_flapping(const YamlMap& map, FlapLimits& flapping) {
    read_count(map, "limit", 0, flapping.limit);
    read_duration(map, "window", flapping.window);
    read_duration(map, "hold", flapping.hold);
    read_duration(map, "hold_max", flapping.hold_max);
    if (flapping.hold_max < flapping.hold) map.reject("hold_max must not be shorter than hold");
}

void read_limits(const YamlMap& map, AppConfig& config) {
    read_count(map, "connections", 8, config.http.connections);
    if (const auto body = map.get("body")) {
        config.http.body_bytes = body->bytes().value;
        if (body->bytes() < Bytes{4096} || body->bytes() > mebibytes(64))
            body->reject("must be from 4KiB to 64MiB");
    }
    read_duration(map, "request_timeout", config.http.request_timeout);
    read_duration(map, "idle_timeout", config.http.idle_timeout);
    read_duration(map, "write_timeout", config.http.write_timeout);
    if (const auto header = map.get("header")) {
        config.http.header_bytes = header->bytes().value;
        if (header->bytes() < Bytes{1024} || header->bytes() > Bytes{256 << 10})
            header->reject("must be from 1KiB to 256KiB");
    }
    read_count(map, "ended_compositions", 1, config.manager.keep_ended);
    read_count(map, "events", 100, config.manager.keep_events);
    read_count(map, "idempotency_keys", 1, config.manager.keep_idempotency);
    if (const auto state = map.get("state")) {
        config.state_limit = state->bytes();
        if (*config.state_limit < mebibytes(1)) state->reject("must be at least 1MiB");
    }
}

// "64GiB", or "10%" of the pool's capacity.
void read_reserve(const YamlValue& value, AppConfig& config) {
    const std::string text = value.string();
    if (!text.ends_with('%')) {
        config.manager.reserve = value.bytes();
        return;
    }
    unsigned percent = 0;
    const char* const last = text.data() + text.size() - 1;
    const auto [end, error] = std::from_chars(text.data(), last, percent);
    if (error != std::errc{} || end != last || percent > 100)
        value.reject("must be a size such as 64GiB, or 0% to 100% of the pool");
    else
        config.manager.reserve_percent = static_cast<std::uint8_t>(percent);
}

void read_placement(const YamlMap& map, AppConfig& config) {
    if (const auto reserve = map.get("reserve")) read_reserve(*reserve, config);
    if (const auto defaults = map.get("defaults"))
        config.manager.placement_defaults.all = read_limits_of_placement(defaults->map());
}

void read_verify_erased(const YamlMap& map, AppConfig& config) {
    VerifyErased& verify = config.manager.verify_erased;
    if (const auto samples = map.get("samples"))
        verify.samples = static_cast<std::uint32_t>(samples->integer(1, 65'536));
    const auto pattern = map.get("erased_pattern");
    if (!pattern) return;
    static const std::map<std::string, ErasedPattern> patterns{
        {"zeros", ErasedPattern::kZeros}, {"uniform", ErasedPattern::kUniform}, {"any", ErasedPattern::kAny}};
    const auto found = patterns.find(pattern->string());
    if (found == patterns.end())
        pattern->reject("must be zeros, uniform or any");
    else
        verify.pattern = found->second;
}

void read_listen(const YamlValue& value, AppConfig& config) {
    const auto one = [&](const YamlValue& entry) {
        const std::string address = entry.string();
        if (std::string refusal = listen_refusal(address, config.security.is_complete()); !refusal.empty())
            entry.reject(std::move(refusal));
        else
            config.listen.push_back(address);
    };
    if (!value.is_list()) return one(value);
    const auto entries = value.list();
    if (entries.empty()) value.reject("must name at least one address");
    for (const YamlValue& entry : entries) one(entry);
}

// Where a switch is, or where it connects to; text that stands for it in messages.
std::string read_switch_place(const YamlMap& map, SwitchLink& link) {
    const auto listen = map.get("listen");
    const auto from = map.get("from");
    if (!listen) {
        if (from) from->reject("only a switch that connects to the manager (listen) has this");
        const YamlValue address = map.require("address");
        std::string text = address.string();
        if (const std::string mistake = switch_address_mistake(text); !text.empty() && !mistake.empty()) {
            address.reject(mistake);
            text.clear();
        }
        return text;
    }
    if (const auto address = map.get("address"))
        address->reject("a switch has an address, or the manager listens for it, not both");
    std::vector<std::string> peers;
    if (from)
        for (const YamlValue& peer : from->list()) peers.push_back(peer.string());
    std::string text = listen->string();
    if (text.empty()) return text;
    auto where = parse_switch_listener(text, peers);
    if (!where) {
        listen->reject(where.error().message);
        return {};
    }
    link.listen = *std::move(where);
    return text;
}

SwitchLink read_switch_link(const YamlMap& map) {
    SwitchLink link;
    if (const auto dialect = map.get("dialect")) {
        link.dialect = dialect->string();
        if (link.dialect != kDetectDialect && fmapi::find_dialect(link.dialect) == nullptr)
            dialect->reject(fmt::format("\"{}\" is none of {}, {}", link.dialect, kDetectDialect,
                                        fmapi::dialect_names()));
    }
    if (const auto in_flight = map.get("in_flight"))
        link.in_flight = static_cast<std::size_t>(in_flight->integer(1, kMostInFlight));
    if (const auto eid = map.get("eid")) link.eid = static_cast<std::uint8_t>(eid->integer(8, 254));
    return link;
}

std::set<std::string> read_switches(const YamlValue& value, AppConfig& config) {
    std::set<std::string> names;
    std::set<std::string> addresses;
    for (const YamlValue& entry : value.list()) {
        const YamlMap map = entry.map();
        const YamlValue name = map.require("name");
        SwitchLink link = read_switch_link(map);
        ManagerSwitch item{SwitchId(name.name()), read_switch_place(map, link)};
        if (!item.id.value.empty() && !names.insert(item.id.value).second)
            name.reject(fmt::format("another switch is already named {}", item.id.value));
        if (!item.address.empty() && !addresses.insert(item.address).second)
            map.require(map.get("listen") ? "listen" : "address")
                .reject(fmt::format("another switch already has the address {}", item.address));
        config.links[item.id] = std::move(link);
        config.manager.switches.push_back(std::move(item));
    }
    if (value.is_list() && names.empty() && config.manager.switches.empty())
        value.reject("must name at least one switch");
    return names;
}

void read_attachments(const YamlMap& map, const std::set<std::string>& switches,
                      std::map<HostAttachment, std::string>& taken, ManagerHost& host) {
    const YamlValue attach = map.require("attach");
    const auto entries = attach.list();
    if (attach.is_list() && entries.empty())
        attach.reject("must name at least one virtual switch, as in {switch: switch0, vcs: 0}");
    for (const YamlValue& entry : entries) {
        const YamlMap where = entry.map();
        const YamlValue switch_name = where.require("switch");
        HostAttachment item{SwitchId(switch_name.name()),
                            static_cast<std::uint8_t>(where.require("vcs").integer(0, 255))};
        if (!item.switch_id.value.empty() && !switches.contains(item.switch_id.value))
            switch_name.reject(fmt::format("there is no switch named {}", item.switch_id.value));
        const auto [other, fresh] = taken.emplace(item, host.id.value);
        if (!fresh)
            entry.reject(fmt::format("VCS {} of {} is already attached to {}", item.vcs, item.switch_id.value,
                                     other->second));
        host.attach.push_back(std::move(item));
    }
}

void read_hosts(const YamlValue& value, const std::set<std::string>& switches, AppConfig& config) {
    std::set<std::string> names;
    std::map<HostAttachment, std::string> taken;
    for (const YamlValue& entry : value.list()) {
        const YamlMap map = entry.map();
        const YamlValue name = map.require("name");
        ManagerHost host{HostId(name.name()), {}};
        if (!host.id.value.empty() && !names.insert(host.id.value).second)
            name.reject(fmt::format("another host is already named {}", host.id.value));
        read_attachments(map, switches, taken, host);
        if (const auto placement = map.get("placement"))
            config.manager.placement_defaults.hosts[host.id] = read_limits_of_placement(placement->map());
        config.manager.hosts.push_back(std::move(host));
    }
}

void read_log_level(const YamlValue& value, AppConfig& config) {
    static const std::map<std::string, log::Level> levels{{"debug", log::Level::kDebug},
                                                          {"info", log::Level::kInfo},
                                                          {"warning", log::Level::kWarning},
                                                          {"error", log::Level::kError}};
    const auto found = levels.find(value.string());
    if (found == levels.end())
        value.reject("must be debug, info, warning or error");
    else
        config.log_level = found->second;
}

void read_log(const YamlMap& map, AppConfig& config) {
    const auto format = map.get("format");
    if (!format) return;
    const std::string name = format->string();
    if (name != "json" && name != "text") format->reject("must be text or json");
    config.log_format = name == "json" ? log::Format::kJson : log::Format::kText;
}

Result<AppConfig> read(const YamlDocument& document) {
    AppConfig config;
    const YamlMap root = document.root();
    const YamlValue listen = root.require("listen");
    const YamlValue state = root.require("state");
    config.state = state.string();
    // SQLite gives these names a meaning of its own.
    if (config.state == ":memory:" || config.state.starts_with("file:") || config.state.ends_with('/'))
        state.reject("must be the path of a file");
    config.security = read_security(root, config.state);
    read_listen(listen, config);
    const auto switches = read_switches(root.require("switches"), config);
    read_hosts(root.require("hosts"), switches, config);
    std::vector<std::string> hosts;
    for (const ManagerHost& host : config.manager.hosts) hosts.push_back(host.id.value);
    config.manager.tenants =
        read_tenants(root, hosts, config.security.gate, config.manager.placement_defaults);
    if (const auto verify = root.get("verify_erased")) read_verify_erased(verify->map(), config);
    if (const auto timing = root.get("timing")) read_timing(timing->map(), config);
    if (const auto flapping = root.get("flapping")) read_flapping(flapping->map(), config.manager.flapping);
    if (const auto limits = root.get("limits")) read_limits(limits->map(), config);
    if (const auto placement = root.get("placement")) read_placement(placement->map(), config);
    if (const auto level = root.get("log_level")) read_log_level(*level, config);
    if (const auto capture = root.get("capture")) {
        config.capture = capture->string();
        if (config.capture.empty()) capture->reject("must be the path of a file");
    }
    if (const auto log = root.get("log")) read_log(log->map(), config);
    if (const auto good = document.check(); !good) return std::unexpected(good.error());
    return config;
}

}  // namespace

std::string listen_refusal(std::string_view address, bool secure) {
    constexpr std::string_view kUnix = "unix:";
    if (address.starts_with(kUnix)) {
        if (address.size() > kUnix.size() + 1 && address[kUnix.size()] == '/') return {};
        return fmt::format("\"{}\" must have an absolute path, as in unix:/run/memtide/manager.sock",
                           address);
    }
    const auto parts = split_host_port(address);
    boost::system::error_code error;
    const auto ip = parts ? boost::asio::ip::make_address(parts->first, error) : boost::asio::ip::address();
    if (!parts || error)
        return fmt::format(
            "\"{}\" must be an IP address and a port, as in 127.0.0.1:8080 or [::1]:8080, or unix:/PATH",
            address);
    if (ip.is_loopback() || secure) return {};
    return fmt::format(
        "{} is not a loopback address, and without both \"tls\" and \"authentication\" whoever reaches the "
        "manager "
        "may give and take memory: add these sections (docs/security.md), or listen on 127.0.0.1, [::1] or "
        "unix:/PATH",
        address);
}

Result<AppConfig> load_config(const std::string& path) {
    const auto document = YamlDocument::load(path);
    if (!document) return std::unexpected(document.error());
    return read(*document);
}

Result<AppConfig> parse_config(std::string_view text, std::string name) {
    const auto document = YamlDocument::parse(text, std::move(name));
    if (!document) return std::unexpected(document.error());
    return read(*document);
}

}  // namespace memtide::fm

#include "fabric-manager/app/security_config.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace memtide::fm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRequests = 10'000'000;  // a second; more than any manager answers

std::string beside(const std::string& state, const char* name) {
    return (fs::path(state).parent_path() / name).string();
}

std::string read_path(const YamlValue& value) {
    std::string path = value.string();
    if (path.empty()) value.reject("must be the path of a file");
    return path;
}

tls::ServerFiles read_tls(const YamlMap& map) {
    tls::ServerFiles files;
    files.certificate = read_path(map.require("certificate"));
    files.key = read_path(map.require("key"));
    if (const auto ca = map.get("client_ca")) files.client_ca = read_path(*ca);
    if (const auto revoked = map.get("revoked")) {
        files.revoked = read_path(*revoked);
        if (files.client_ca.empty()) revoked->reject("needs client_ca: it lists that CA's certificates");
    }
    if (const auto client = map.get("client_certificate")) {
        const std::string how = client->string();
        files.client_certificate_required = how == "required";
        if (how != "required" && how != "optional") client->reject("must be required or optional");
        if (files.client_ca.empty()) client->reject("needs client_ca: whose certificates clients may show");
    }
    if (const auto version = map.get("min_version")) {
        const std::string text = version->string();
        files.only_tls_1_3 = text == "1.3";
        if (text != "1.2" && text != "1.3") version->reject("must be 1.2 or 1.3");
    }
    return files;
}

Rate read_rate(const YamlValue& value) {
    const auto per_second = static_cast<double>(value.integer(0, kMostRequests));
    return {per_second, 2 * per_second};
}

void read_authentication(const YamlMap& map, GateOptions& gate) {
    if (const auto tokens = map.get("tokens")) gate.tokens = read_path(*tokens);
    if (const auto requests = map.get("requests_per_second")) gate.rate = read_rate(*requests);
    if (const auto failures = map.get("failures_per_second")) gate.failures = read_rate(*failures);
}

AuditFileOptions read_audit(const YamlMap& map, AuditFileOptions options) {
    if (const auto path = map.get("file")) options.path = read_path(*path);
    if (const auto size = map.get("rotate_size")) {
        options.rotate_bytes = size->bytes().value;
        if (size->bytes() < Bytes{64 << 10}) size->reject("must be at least 64KiB");
    }
    if (const auto keep = map.get("keep")) options.keep = static_cast<int>(keep->integer(0, 1000));
    if (const auto sync = map.get("sync")) {
        const std::string how = sync->string();
        options.sync_each_line = how == "each";
        if (how != "each" && how != "second") sync->reject("must be each or second");
    }
    return options;
}

}  // namespace

SecurityConfig read_security(const YamlMap& root, const std::string& state) {
    SecurityConfig config;
    if (const auto section = root.get("tls")) config.tls = read_tls(section->map());
    if (const auto section = root.get("authentication")) {
        config.gate.authentication = true;
        config.gate.tokens = beside(state, "tokens");
        config.gate.rate = {500, 1'000};
        config.audit = AuditFileOptions{};
        config.audit->path = beside(state, "audit.log");
        read_authentication(section->map(), config.gate);
    }
    if (const auto section = root.get("audit")) {
        AuditFileOptions options;
        options.path = beside(state, "audit.log");
        config.audit = read_audit(section->map(), std::move(options));
    }
    if (const auto names = root.get("host_names")) {
        for (const YamlValue& name : names->list()) config.gate.host_names.push_back(name.string());
        if (config.gate.authentication)
            names->reject("is for managers without authentication; with it, every Host header will do");
    }
    return config;
}

PlacementLimits read_limits_of_placement(const YamlMap& map) {
    PlacementLimits limits;
    const auto percent = [&](std::string_view key) -> std::optional<std::uint8_t> {
        const auto given = map.get(key);
        return given ? std::optional(static_cast<std::uint8_t>(given->integer(1, 100))) : std::nullopt;
    };
    limits.max_percent_per_device = percent("max_percent_per_device");
    limits.max_percent_per_switch = percent("max_percent_per_switch");
    if (const auto exclusive = map.get("exclusive_devices")) limits.exclusive_devices = exclusive->boolean();
    return limits;
}

Tenants read_tenants(const YamlMap& root, const std::vector<std::string>& hosts, GateOptions& gate,
                     PlacementDefaults& defaults) {
    Tenants tenants;
    const auto section = root.get("tenants");
    if (!section) return tenants;
    for (const YamlValue& entry : section->list()) {
        const YamlMap map = entry.map();
        const YamlValue name = map.require("name");
        TenantQuota quota;
        if (const auto bytes = map.get("bytes")) quota.bytes = bytes->bytes();
        if (const auto compositions = map.get("compositions"))
            quota.compositions = compositions->integer(0, 100'000'000);
        if (const auto allowed = map.get("hosts"))
            for (const YamlValue& host : allowed->list()) {
                const std::string text = host.name();
                if (!text.empty() && std::ranges::find(hosts, text) == hosts.end())
                    host.reject(fmt::format("there is no host named {}", text));
                quota.hosts.emplace(text);
            }
        const std::string text = name.name();
        if (const auto requests = map.get("requests_per_second")) gate.tenants[text] = read_rate(*requests);
        if (const auto placement = map.get("placement"))
            defaults.tenants[text] = read_limits_of_placement(placement->map());
        if (!text.empty() && !tenants.emplace(text, std::move(quota)).second)
            name.reject(fmt::format("another tenant is already named {}", text));
    }
    return tenants;
}

}  // namespace memtide::fm

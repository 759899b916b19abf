#include "cxl-emul/hosts/manager_config.h"

#include <filesystem>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memtide::emul {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kSpareConnections = 1024;  // beside the long polls: reports, and clients
constexpr std::size_t kSpareWithTls = 3072;      // hosts do not share connections for their reports then

// Hosts with where they see a virtual switch, in the order of the switches; a host can have several.
std::vector<std::pair<std::string, std::vector<std::string>>> attachments_of(const Topology& topology) {
    std::vector<std::pair<std::string, std::vector<std::string>>> hosts;
    std::unordered_map<std::string, std::size_t> place_of;
    for (const SwitchConfig& one : topology.switches)
        for (const VcsConfig& vcs : one.vcss) {
            const std::string& host = one.port(vcs.upstream_port)->host->value;
            const auto [place, is_new] = place_of.try_emplace(host, hosts.size());
            if (is_new) hosts.emplace_back(host, std::vector<std::string>());
            hosts[place->second].second.push_back(
                fmt::format("{{switch: {}, vcs: {}}}", one.name.value, vcs.id));
        }
    return hosts;
}

// YAML text in double quotes.
std::string yaml_text(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + '"';
}

}  // namespace

ManagerFiles manager_files(std::string state, const std::string& certificates) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::absolute(certificates, error);
    const std::filesystem::path revoked = folder / "crl.pem";
    return {std::move(state), folder / "server.pem", folder / "server.key", folder / "ca.pem",
            std::filesystem::exists(revoked, error) ? revoked.string() : ""};
}

Result<std::string> manager_config(const Topology& topology, std::string_view manager,
                                   const ManagerFiles& files) {
    const bool secure = manager.starts_with(kHttps);
    std::string_view listen = manager;
    if (manager.starts_with(kHttp))
        listen = manager.substr(kHttp.size());
    else if (secure)
        listen = manager.substr(kHttps.size());
    else if (!manager.starts_with(kUnix))
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is neither http://ADDRESS:PORT, https://ADDRESS:PORT nor unix:/PATH",
                                manager));
    if (listen.ends_with('/')) listen.remove_suffix(1);
    std::string text =
        "# Written by memtide-cxl-emul hosts: the fabric manager of its emulated switches and hosts.\n";
    auto out = std::back_inserter(text);
    fmt::format_to(out, "listen: {}\nstate: {}\nswitches:\n", yaml_text(listen), yaml_text(files.state));
    for (const SwitchConfig& one : topology.switches) {
        const bool connects = one.listen.empty();  // then the manager listens for it
        const Endpoint& place = connects ? one.connect.front() : one.listen.front();
        fmt::format_to(out, "  - {{name: {}, {}: {}}}\n", one.name.value, connects ? "listen" : "address",
                       yaml_text(format_endpoint(place)));
    }
    text += "hosts:\n";
    const auto hosts = attachments_of(topology);
    for (const auto& [host, attachments] : hosts)
        fmt::format_to(out, "  - {{name: {}, attach: [{}]}}\n", host, fmt::join(attachments, ", "));
    fmt::format_to(out, "limits:\n  connections: {}\n",
                   hosts.size() + (secure ? kSpareWithTls : kSpareConnections));
    text += "log_level: warning\n";
    if (!secure) return text;
    fmt::format_to(out, "tls:\n  certificate: {}\n  key: {}\n  client_ca: {}\n", yaml_text(files.certificate),
                   yaml_text(files.key), yaml_text(files.client_ca));
    if (!files.revoked.empty()) fmt::format_to(out, "  revoked: {}\n", yaml_text(files.revoked));
    text += "authentication: {requests_per_second: 0}\n";  // load comes from few clients
    return text;
}

}  // namespace memtide::emul

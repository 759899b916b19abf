#include "cxl-emul/hosts/manager_config.h"

#include <iterator>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kSpareConnections = 1024;  // beside the long polls: reports, and clients

std::size_t count_hosts(const Topology& topology) {
    std::size_t hosts = 0;
    for (const SwitchConfig& one : topology.switches) hosts += one.vcss.size();
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

Result<std::string> manager_config(const Topology& topology, std::string_view manager,
                                   std::string_view state) {
    std::string_view listen = manager;
    if (manager.starts_with(kHttp))
        listen = manager.substr(kHttp.size());
    else if (!manager.starts_with(kUnix))
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is neither http://ADDRESS:PORT nor unix:/PATH", manager));
    if (listen.ends_with('/')) listen.remove_suffix(1);
    std::string text =
        "# Written by memtide-cxl-emul hosts: the fabric manager of its emulated switches and hosts.\n";
    auto out = std::back_inserter(text);
    fmt::format_to(out, "listen: {}\nstate: {}\nswitches:\n", yaml_text(listen), yaml_text(state));
    for (const SwitchConfig& one : topology.switches)
        fmt::format_to(out, "  - {{name: {}, address: {}}}\n", one.name.value,
                       yaml_text(format_endpoint(one.listen.front())));
    text += "hosts:\n";
    for (const SwitchConfig& one : topology.switches)
        for (const VcsConfig& vcs : one.vcss)
            fmt::format_to(out, "  - {{name: {}, attach: [{{switch: {}, vcs: {}}}]}}\n",
                           one.port(vcs.upstream_port)->host->value, one.name.value, vcs.id);
    fmt::format_to(out, "limits:\n  connections: {}\n", count_hosts(topology) + kSpareConnections);
    text += "log_level: warning\n";
    return text;
}

}  // namespace memtide::emul

#include "fabric-manager/fmapi/address.h"

#include <charconv>

#include <fmt/format.h>

namespace memtide::fm {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kUnix = "unix://";
constexpr std::string_view kDevice = "cxl://";
constexpr std::string_view kMctp = "mctp://";
constexpr std::size_t kMaxUnixPath = 107;  // sockaddr_un::sun_path with its end

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not a switch address: {}", text, why));
}

bool is_port(std::string_view text) {
    unsigned port = 0;
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), port);
    return status == std::errc{} && stop == text.data() + text.size() && port >= 1 && port <= 65535;
}

Result<SwitchAddress> parse_tcp(std::string_view whole, std::string_view rest) {
    const auto colon = rest.rfind(':');
    if (colon == std::string_view::npos) return bad(whole, "the port is missing, write tcp://host:port");
    std::string_view host = rest.substr(0, colon);
    const std::string_view port = rest.substr(colon + 1);
    if (!is_port(port)) return bad(whole, "the port must be 1 to 65535");
    if (host.starts_with('[') && host.ends_with(']'))
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos)
        return bad(whole, "write an IPv6 address in brackets, tcp://[::1]:2650");
    if (host.empty()) return bad(whole, "the host is missing, write tcp://host:port");
    return SwitchAddress{.host = std::string(host), .port = std::string(port)};
}

template <typename Number>
bool read_number(std::string_view text, Number& into) {
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), into);
    return status == std::errc{} && stop == text.data() + text.size();
}

Result<SwitchAddress> parse_mctp(std::string_view whole, std::string_view rest) {
    MctpEndpoint endpoint;
    const auto at = rest.find('@');
    if (at == std::string_view::npos || !read_number(rest.substr(0, at), endpoint.eid) ||
        !read_number(rest.substr(at + 1), endpoint.network))
        return bad(whole, "write mctp://EID@NETWORK with two numbers, mctp://9@1");
    if (endpoint.eid < 8 || endpoint.eid == 255) return bad(whole, "an endpoint id is 8 to 254");
    return SwitchAddress{.mctp = endpoint};
}

}  // namespace

Result<SwitchAddress> parse_switch_address(std::string_view text) {
    if (text.starts_with(kTcp)) return parse_tcp(text, text.substr(kTcp.size()));
    if (text.starts_with(kUnix)) {
        const std::string_view path = text.substr(kUnix.size());
        if (!path.starts_with('/')) return bad(text, "write an absolute path, unix:///run/switch.sock");
        if (path.size() > kMaxUnixPath)
            return bad(text, fmt::format("the path is longer than {} bytes", kMaxUnixPath));
        return SwitchAddress{.path = std::string(path)};
    }
    if (text.starts_with(kDevice)) {
        const std::string_view path = text.substr(kDevice.size());
        if (path.size() < 2 || !path.starts_with('/'))
            return bad(text, "write an absolute path, cxl:///dev/cxl/switch0");
        return SwitchAddress{.device = std::string(path)};
    }
    if (text.starts_with(kMctp)) return parse_mctp(text, text.substr(kMctp.size()));
    return bad(text, "write tcp://host:port, unix:///path, cxl:///dev/cxl/DEVICE or mctp://EID@NETWORK");
}

}  // namespace memtide::fm

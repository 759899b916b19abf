#include "cxl-emul/switch/endpoint.h"

#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace memtide::emul {
namespace {

constexpr std::size_t kMaxUnixPath = sizeof(sockaddr_un::sun_path) - 1;

bool is_loopback(const std::string& host) {
    in_addr v4{};
    if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == IN_LOOPBACKNET;
    in6_addr v6{};
    return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

Result<Endpoint> parse_tcp(std::string_view address) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string_view::npos)
        return fail(ErrorCode::kInvalidArgument, "needs a port: tcp://127.0.0.1:2650, or :0 for any");
    std::string_view host = address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const std::string_view digits = address.substr(colon + 1);
    Endpoint endpoint{.kind = Endpoint::Kind::kTcp, .host = std::string(host), .port = 0, .path = {}};
    const auto [stop, status] = std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
    if (digits.empty() || status != std::errc{} || stop != digits.data() + digits.size())
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is not a port from 0 to 65535", digits.substr(0, 40)));
    if (!is_loopback(endpoint.host))
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is not a loopback address such as 127.0.0.1; the FM API knows no "
                                "authentication",
                                host.substr(0, 80)));
    return endpoint;
}

Result<Endpoint> parse_unix(std::string_view path) {
    if (!path.starts_with('/') || path.ends_with('/'))
        return fail(ErrorCode::kInvalidArgument, "needs an absolute path: unix:///run/memtide/switch0.sock");
    if (path.size() > kMaxUnixPath || path.find('\0') != std::string_view::npos)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("the path of a unix socket has at most {} bytes, this has {}", kMaxUnixPath,
                                path.size()));
    return Endpoint{.kind = Endpoint::Kind::kUnix, .host = {}, .port = 0, .path = std::string(path)};
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
    constexpr std::string_view kTcp = "tcp://";
    constexpr std::string_view kUnix = "unix://";
    if (text.starts_with(kTcp)) return parse_tcp(text.substr(kTcp.size()));
    if (text.starts_with(kUnix)) return parse_unix(text.substr(kUnix.size()));
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is neither tcp://ADDRESS:PORT nor unix:///PATH", text.substr(0, 80)));
}

std::string format_endpoint(const Endpoint& endpoint) {
    if (endpoint.kind == Endpoint::Kind::kUnix) return "unix://" + endpoint.path;
    const bool v6 = endpoint.host.find(':') != std::string::npos;
    return fmt::format("tcp://{}{}{}:{}", v6 ? "[" : "", endpoint.host, v6 ? "]" : "", endpoint.port);
}

}  // namespace memtide::emul

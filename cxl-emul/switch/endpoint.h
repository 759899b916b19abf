#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::emul {

// Where a switch listens: "tcp://127.0.0.1:2650", "tcp://[::1]:0" (any free port) or
// "unix:///run/switch0.sock".
struct Endpoint {
    enum class Kind { kTcp, kUnix };
    Kind kind = Kind::kTcp;
    std::string host;  // a loopback address, without brackets; empty for kUnix
    std::uint16_t port = 0;
    std::string path;  // absolute; empty for kTcp

    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// kInvalidArgument on any other scheme, an address that is not loopback (the FM API knows no authentication),
// a relative path, or one longer than a unix socket can have (107 bytes).
Result<Endpoint> parse_endpoint(std::string_view text);
std::string format_endpoint(const Endpoint& endpoint);

}  // namespace memtide::emul

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::fm {

// An endpoint on a network of this machine's MCTP stack.
struct MctpEndpoint {
    std::uint8_t eid = 0;
    std::uint32_t network = 0;

    friend bool operator==(const MctpEndpoint&, const MctpEndpoint&) = default;
};

// Where the FM API of a switch is reached: over TCP when `host` is there, a unix socket when `path` is, a
// device file of the kernel's CXL driver, or an MCTP endpoint. Exactly one of them is.
struct SwitchAddress {
    std::string host = {};  // name or number, IPv6 without brackets
    std::string port = {};
    std::string path = {};
    std::string device = {};  // "/dev/cxl/switch0"
    std::optional<MctpEndpoint> mctp = {};

    friend bool operator==(const SwitchAddress&, const SwitchAddress&) = default;
};

// Reads "tcp://host:port", "tcp://[::1]:port", "unix:///path", "cxl:///dev/cxl/mem0" and
// "mctp://EID@NETWORK"; kInvalidArgument otherwise.
Result<SwitchAddress> parse_switch_address(std::string_view text);

}  // namespace memtide::fm

#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::fm {

// Where a switch listens: TCP when `path` is empty, a unix socket otherwise.
struct SwitchAddress {
    std::string host;  // name or number, IPv6 without brackets
    std::string port;
    std::string path;

    friend bool operator==(const SwitchAddress&, const SwitchAddress&) = default;
};

// Reads "tcp://host:port", "tcp://[::1]:port" and "unix:///path"; kInvalidArgument otherwise.
Result<SwitchAddress> parse_switch_address(std::string_view text);

}  // namespace memtide::fm

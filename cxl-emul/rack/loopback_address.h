#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::emul {

struct LoopbackAddress {
    std::string host;  // dotted IPv4 of 127.0.0.0/8
    std::uint16_t port = 0;
};

// "127.0.0.1:8080" or "localhost:8080". kInvalidArgument on anything else: guests reach the manager of this
// machine and nothing beyond.
Result<LoopbackAddress> parse_loopback_address(std::string_view text);

}  // namespace memtide::emul

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/base/error.h"

namespace memtide::fm {

// Where a switch connects to the manager, and from where.
struct SwitchListener {
    boost::asio::ip::address address;
    std::uint16_t port = 0;
    std::vector<boost::asio::ip::address> from;  // who may; empty: whoever reaches the address

    friend bool operator==(const SwitchListener&, const SwitchListener&) = default;
};

// Reads "tcp://ADDRESS:PORT" with an IP address; kInvalidArgument otherwise. A switch does not say who it is,
// so an address other than loopback needs `from`: the numbers of those that may connect.
Result<SwitchListener> parse_switch_listener(std::string_view text, const std::vector<std::string>& from);

}  // namespace memtide::fm

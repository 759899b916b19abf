#pragma once

#include <string>

namespace memtide::tls {

// Whether it is an IPv4 or IPv6 address rather than a DNS name; certificates tell the two apart.
bool is_ip_address(const std::string& text);

}  // namespace memtide::tls

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memtide::fm {

// Whether a Host header (RFC 9110, 7.2) names this machine: localhost, a loopback address, or one of
// `others`, with any port. A web page can make a browser resolve the page's own name to 127.0.0.1 and so
// reach a manager that trusts whoever is on its machine (DNS rebinding); the browser still says whose name it
// used.
bool names_this_machine(std::string_view host_header, const std::vector<std::string>& others);

}  // namespace memtide::fm

#include "common/tls/ip_address.h"

#include <arpa/inet.h>

namespace memtide::tls {

bool is_ip_address(const std::string& text) {
    in6_addr parsed{};
    return ::inet_pton(AF_INET, text.c_str(), &parsed) == 1 ||
           ::inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

}  // namespace memtide::tls

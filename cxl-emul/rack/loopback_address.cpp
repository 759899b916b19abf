#include "cxl-emul/rack/loopback_address.h"

#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace memtide::emul {

Result<LoopbackAddress> parse_loopback_address(std::string_view text) {
    const auto refuse = [&] {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is no loopback address with a port, like 127.0.0.1:8080", text));
    };
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) return refuse();
    LoopbackAddress address;
    address.host = text.substr(0, colon);
    if (address.host == "localhost") address.host = "127.0.0.1";
    const auto digits = text.substr(colon + 1);
    const auto end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, address.port).ptr != end || address.port == 0) return refuse();
    in_addr parsed{};
    if (::inet_pton(AF_INET, address.host.c_str(), &parsed) != 1 || (ntohl(parsed.s_addr) >> 24) != 127)
        return refuse();
    return address;
}

}  // namespace memtide::emul

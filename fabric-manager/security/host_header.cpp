#include "fabric-manager/security/host_header.h"

#include <algorithm>

#include <boost/asio/ip/address.hpp>

namespace memtide::fm {
namespace {

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

// Without the port; empty when it is none.
std::string_view host_of(std::string_view header) {
    if (header.starts_with('[')) {
        const auto end = header.find(']');
        if (end == std::string_view::npos) return {};
        const std::string_view rest = header.substr(end + 1);
        return rest.empty() || rest.starts_with(':') ? header.substr(1, end - 1) : std::string_view();
    }
    return header.substr(0, header.find(':'));
}

}  // namespace

bool names_this_machine(std::string_view host_header, const std::vector<std::string>& others) {
    const std::string host = lower(host_of(host_header));
    if (host.empty()) return false;
    if (host == "localhost" || std::ranges::find(others, host) != others.end()) return true;
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(host, error);
    return !error && address.is_loopback();
}

}  // namespace memtide::fm

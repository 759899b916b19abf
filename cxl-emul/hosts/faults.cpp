#include "cxl-emul/hosts/faults.h"

#include <algorithm>

namespace memtide::emul {
namespace {

constexpr std::array<std::string_view, kHostFaults> kNames{
    "reboot",          "agent-dies",          "silence",
    "refuses-online",  "refuses-offline",     "late-reports",
    "lies-about-size", "reports-for-another", "wrong-certificate",
    "link-down",       "refuses-capacity"};

}  // namespace

std::string_view to_string(HostFault fault) { return kNames[static_cast<std::size_t>(fault)]; }

std::optional<HostFault> parse_host_fault(std::string_view text) {
    const auto found = std::ranges::find(kNames, text);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<HostFault>(found - kNames.begin());
}

std::span<const std::string_view> host_fault_names() { return kNames; }

}  // namespace memtide::emul

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace memtide::emul {

// What can be wrong with an emulated host. A host may have several at a time.
enum class HostFault : std::uint8_t {
    kReboot,             // off; it comes up with a new boot id and its memory not online
    kAgentDies,          // nobody asks, acts or reports; memory stays as it is
    kSilence,            // the agent works, and its network does not
    kRefusesOnline,      // reports "failed" instead of bringing memory online
    kRefusesOffline,     // memory has holders: stays "draining"
    kLateReports,        // each report is 2 s late
    kLiesAboutSize,      // reports half of the memory online, and memdevs that are too large
    kReportsForAnother,  // sends its report to the resource of its neighbour as well
    kWrongCertificate,   // shows the certificate of its neighbour
    kLinkDown,           // of its upstream port: its devices are gone until it is up again
    kRefusesCapacity,    // accepts nothing of the dynamic capacity that it is offered
};
inline constexpr std::size_t kHostFaults = 11;

// As control requests and --fault name it: "reboot", "agent-dies", ...
std::string_view to_string(HostFault fault);
std::optional<HostFault> parse_host_fault(std::string_view text);
// All names, in the order of the enumeration.
std::span<const std::string_view> host_fault_names();

// A set of them.
class HostFaults {
  public:
    [[nodiscard]] bool has(HostFault fault) const { return (bits_ & bit(fault)) != 0; }
    void set(HostFault fault, bool on) {
        bits_ = static_cast<std::uint16_t>(on ? bits_ | bit(fault) : bits_ & ~bit(fault));
    }
    [[nodiscard]] bool none() const { return bits_ == 0; }

  private:
    static std::uint16_t bit(HostFault fault) {
        return static_cast<std::uint16_t>(1u << static_cast<unsigned>(fault));
    }
    std::uint16_t bits_ = 0;
};

}  // namespace memtide::emul

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/fmapi/commands/qos.h"

// What the quality of service of an MLD comes to in numbers (CXL 3.1, 3.3.4.3): which part of the device's
// bandwidth each of its LDs gets when they want more than there is. Pure; bandwidths are in bytes a second.
namespace memtide::emul {

// Fractions of a device's bandwidth are in 256ths.
inline constexpr unsigned kWholeBandwidth = 256;
// A device has less than this; what an LD wants may be anything.
inline constexpr std::uint64_t kMaxBandwidth = std::uint64_t{1} << 56;

// `fraction` 256ths of `bandwidth`, rounded down.
std::uint64_t part_of(std::uint64_t bandwidth, unsigned fraction);

struct LdTraffic {
    std::uint8_t allocated = 0;  // promised, in 256ths
    std::uint8_t limit = 0;      // never more than this, in 256ths; 0: no limit
    std::uint64_t demand = 0;
};

// The DevLoad that a host is told of with each answer of its LD.
enum class DeviceLoad : std::uint8_t { kLight = 0, kOptimal = 1, kModerateOverload = 2, kSevereOverload = 3 };

struct BandwidthShares {
    std::vector<std::uint64_t> granted;  // by LD
    // Of what the LDs want within their limits, how much has to wait: 0 to 100.
    std::uint8_t backpressure_percent = 0;
    std::vector<DeviceLoad> loads;  // by LD
};

// Each LD gets what it wants up to what is promised to it; the rest of the device's bandwidth goes in equal
// parts to those who want more, none of whom gets more than its limit. So a promise is kept under contention,
// what is not used goes to others, and the sum is exactly what is wanted within the limits or all there is.
// Promises of more than the whole are kept in the order of the LDs.
BandwidthShares share_bandwidth(std::uint64_t bandwidth, std::span<const LdTraffic> lds,
                                const fmapi::QosControl& control = {});

}  // namespace memtide::emul

#include "cxl-emul/switch/qos.h"

#include <algorithm>
#include <numeric>

namespace memtide::emul {
namespace {

std::uint64_t sum_of(std::span<const std::uint64_t> values) {
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

// What each LD would get of a device that has enough: without a limit, all it demands.
std::vector<std::uint64_t> caps_of(std::uint64_t bandwidth, std::span<const LdTraffic> lds) {
    std::vector<std::uint64_t> caps;
    for (const LdTraffic& ld : lds) {
        const std::uint64_t limit = ld.limit == 0 ? kMaxBandwidth : part_of(bandwidth, ld.limit);
        caps.push_back(std::min(ld.demand, limit));
    }
    return caps;
}

// Gives `left` to those who have less than their caps, in equal parts: whoever wants the least is satisfied
// first, so that what it leaves is there for the others.
void give_equally(std::uint64_t left, std::span<const std::uint64_t> caps, std::span<std::uint64_t> granted) {
    std::vector<std::size_t> wanting(caps.size());
    std::iota(wanting.begin(), wanting.end(), std::size_t{0});
    std::ranges::sort(wanting, {}, [&](std::size_t ld) { return caps[ld] - granted[ld]; });
    for (std::size_t i = 0; i < wanting.size(); ++i) {
        const std::size_t ld = wanting[i];
        const std::uint64_t part = std::min(left / (wanting.size() - i), caps[ld] - granted[ld]);
        granted[ld] += part;
        left -= part;
    }
}

std::uint8_t percent_of(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return 0;
    return static_cast<std::uint8_t>(static_cast<double>(part) * 100.0 / static_cast<double>(whole));
}

// CXL 3.1, 3.3.4.3.4: below its promise an LD is lightly loaded; one that its limit holds back is told to
// slow down, and so is everyone while the egress port is congested.
DeviceLoad load_of(std::uint64_t bandwidth, const LdTraffic& ld, std::uint8_t backpressure,
                   const fmapi::QosControl& control) {
    DeviceLoad load =
        ld.demand < part_of(bandwidth, ld.allocated) ? DeviceLoad::kLight : DeviceLoad::kOptimal;
    if (ld.limit != 0 && ld.demand > part_of(bandwidth, ld.limit)) load = DeviceLoad::kModerateOverload;
    if ((control.telemetry & fmapi::kEgressPortCongestion) == 0 || ld.demand == 0) return load;
    if (backpressure >= control.egress_severe_percent) return DeviceLoad::kSevereOverload;
    if (backpressure >= control.egress_moderate_percent) load = DeviceLoad::kModerateOverload;
    return load;
}

}  // namespace

std::uint64_t part_of(std::uint64_t bandwidth, unsigned fraction) {
    return bandwidth / kWholeBandwidth * fraction + bandwidth % kWholeBandwidth * fraction / kWholeBandwidth;
}

BandwidthShares share_bandwidth(std::uint64_t bandwidth, std::span<const LdTraffic> lds,
                                const fmapi::QosControl& control) {
    bandwidth = std::min(bandwidth, kMaxBandwidth);
    const std::vector<std::uint64_t> caps = caps_of(bandwidth, lds);
    BandwidthShares shares;
    std::uint64_t left = bandwidth;
    for (std::size_t i = 0; i < lds.size(); ++i) {
        shares.granted.push_back(std::min({caps[i], part_of(bandwidth, lds[i].allocated), left}));
        left -= shares.granted.back();
    }
    give_equally(left, caps, shares.granted);
    const std::uint64_t wanted = sum_of(caps);
    if (control.backpressure_sample_interval != 0)  // otherwise it is not sampled
        shares.backpressure_percent = percent_of(wanted - sum_of(shares.granted), wanted);
    for (const LdTraffic& ld : lds)
        shares.loads.push_back(load_of(bandwidth, ld, shares.backpressure_percent, control));
    return shares;
}

}  // namespace memtide::emul

#pragma once

#include <cstdint>
#include <tuple>

#include "common/fmapi/commands/dynamic_capacity.h"
#include "common/fmapi/commands/events.h"

// What a dynamic capacity device records in its dynamic capacity event logs (CXL 3.1, 8.2.9.2.1.6): for a
// host in the log of its LD, for the fabric manager in that of the device.
namespace memtide::fmapi {

inline constexpr Uuid kDynamicCapacityRecord{0xca, 0x95, 0xaf, 0xa7, 0xf1, 0x83, 0x40, 0x18,
                                             0x8c, 0x2f, 0x95, 0x26, 0x8e, 0x10, 0x1a, 0x2a};

enum class DynamicCapacityEvent : std::uint8_t {
    // For the host.
    kAddCapacity = 0,      // offered; it answers with Add Dynamic Capacity Response
    kReleaseCapacity = 1,  // asked back; it answers with Release Dynamic Capacity
    kForcedRelease = 2,    // gone
    kRegionConfigurationUpdated = 3,
    // For the fabric manager.
    kAddCapacityResponse = 4,  // accepted
    kCapacityReleased = 5,     // given back
};

// Bit of DynamicCapacityRecord::flags: the next record of the log belongs to the same request.
inline constexpr std::uint8_t kMoreDynamicCapacity = 1u << 0;

// What EventRecord::data holds.
struct DynamicCapacityRecord {
    DynamicCapacityEvent event = DynamicCapacityEvent::kAddCapacity;
    std::uint8_t validity = 0;  // bit 0: available_extents is valid, bit 1: so is available_tags
    std::uint16_t host = 0;     // of an event for the fabric manager: whose it is
    std::uint8_t region = 0;    // that was updated
    std::uint8_t flags = 0;
    DcExtent extent;
    std::uint32_t available_extents = 0;
    std::uint32_t available_tags = 0;

    static constexpr std::string_view kName = "dynamic capacity event record";
    static constexpr std::size_t kWireSize = 80;
    static constexpr auto fields =
        std::tuple{field("event", &DynamicCapacityRecord::event),
                   field("validity", &DynamicCapacityRecord::validity),
                   field("host", &DynamicCapacityRecord::host),
                   field("region", &DynamicCapacityRecord::region),
                   field("flags", &DynamicCapacityRecord::flags),
                   reserved(2),
                   field("extent", &DynamicCapacityRecord::extent),
                   reserved(24),
                   field("available_extents", &DynamicCapacityRecord::available_extents),
                   field("available_tags", &DynamicCapacityRecord::available_tags)};
    friend bool operator==(const DynamicCapacityRecord&, const DynamicCapacityRecord&) = default;
};

}  // namespace memtide::fmapi

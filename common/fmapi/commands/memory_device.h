#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "common/base/bytes.h"
#include "common/fmapi/command.h"

// Memory device commands (CXL 3.1, 8.2.9.9), which an SLD or an LD of an MLD answers.
namespace memtide::fmapi {

// Capacities are in multiples of 256 MiB.
struct IdentifyMemoryDeviceResponse {
    std::array<char, 16> firmware_revision{};  // ASCII, zero padded
    std::uint64_t total_capacity = 0;
    std::uint64_t volatile_only_capacity = 0;
    std::uint64_t persistent_only_capacity = 0;
    std::uint64_t partition_alignment = 0;   // 0: what is left cannot be partitioned
    std::uint16_t informational_events = 0;  // entries each event log holds
    std::uint16_t warning_events = 0;
    std::uint16_t failure_events = 0;
    std::uint16_t fatal_events = 0;
    std::uint32_t lsa_size = 0;         // label storage, bytes
    std::uint32_t poison_list_max = 0;  // 24 bits
    std::uint16_t inject_poison_limit = 0;
    std::uint8_t poison_handling = 0;
    std::uint8_t qos_telemetry = 0;
    std::uint16_t dynamic_capacity_events = 0;  // CXL 2.0 devices do not send it

    [[nodiscard]] constexpr Bytes total() const { return kCxlGranule * total_capacity; }

    static constexpr std::string_view kName = "Identify Memory Device response";
    static constexpr std::size_t kWireSize = 69;
    static constexpr auto fields =
        std::tuple{field("firmware_revision", &IdentifyMemoryDeviceResponse::firmware_revision),
                   field("total_capacity", &IdentifyMemoryDeviceResponse::total_capacity),
                   field("volatile_only_capacity", &IdentifyMemoryDeviceResponse::volatile_only_capacity),
                   field("persistent_only_capacity", &IdentifyMemoryDeviceResponse::persistent_only_capacity),
                   field("partition_alignment", &IdentifyMemoryDeviceResponse::partition_alignment),
                   field("informational_events", &IdentifyMemoryDeviceResponse::informational_events),
                   field("warning_events", &IdentifyMemoryDeviceResponse::warning_events),
                   field("failure_events", &IdentifyMemoryDeviceResponse::failure_events),
                   field("fatal_events", &IdentifyMemoryDeviceResponse::fatal_events),
                   field("lsa_size", &IdentifyMemoryDeviceResponse::lsa_size),
                   field24("poison_list_max", &IdentifyMemoryDeviceResponse::poison_list_max),
                   field("inject_poison_limit", &IdentifyMemoryDeviceResponse::inject_poison_limit),
                   field("poison_handling", &IdentifyMemoryDeviceResponse::poison_handling),
                   field("qos_telemetry", &IdentifyMemoryDeviceResponse::qos_telemetry),
                   optional_tail(field("dynamic_capacity_events",
                                       &IdentifyMemoryDeviceResponse::dynamic_capacity_events))};
    friend bool operator==(const IdentifyMemoryDeviceResponse&,
                           const IdentifyMemoryDeviceResponse&) = default;
};

using IdentifyMemoryDevice = Command<Opcode::kIdentifyMemoryDevice, NoPayload, IdentifyMemoryDeviceResponse>;
using Sanitize = Command<Opcode::kSanitize, NoPayload, NoPayload>;  // a background operation

}  // namespace memtide::fmapi

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

// Bits of GetHealthInfoResponse::health_status.
inline constexpr std::uint8_t kMaintenanceNeeded = 0x01;
inline constexpr std::uint8_t kPerformanceDegraded = 0x02;
inline constexpr std::uint8_t kReplacementNeeded = 0x04;
inline constexpr std::uint8_t kCapacityDegraded = 0x08;

enum class MediaStatus : std::uint8_t {
    kNormal = 0,
    kNotReady = 1,
    kPersistencyLost = 2,
    kDataLost = 3,
    kPowerLossLosesPersistency = 4,
    kShutdownLosesPersistency = 5,
    kPersistencyLossImminent = 6,
    kPowerLossLosesData = 7,
    kShutdownLosesData = 8,
    kDataLossImminent = 9,
};

// What GetHealthInfoResponse::additional_status has two bits of for life used and temperature.
enum class HealthLevel : std::uint8_t { kNormal = 0, kWarning = 1, kCritical = 2 };
inline constexpr std::uint8_t kCorrectedVolatileErrors = 0x10;    // more than the device's threshold
inline constexpr std::uint8_t kCorrectedPersistentErrors = 0x20;  // the same

inline constexpr std::uint8_t kLifeUsedUnknown = 0xff;
inline constexpr std::int16_t kTemperatureUnknown = 0x7fff;

// CXL 3.1, 8.2.9.9.3.1.
struct GetHealthInfoResponse {
    std::uint8_t health_status = 0;
    MediaStatus media_status = MediaStatus::kNormal;
    std::uint8_t additional_status = 0;
    std::uint8_t life_used = kLifeUsedUnknown;       // percent; more than 100 is possible
    std::int16_t temperature = kTemperatureUnknown;  // degrees Celsius
    std::uint32_t dirty_shutdowns = 0;
    std::uint32_t corrected_volatile_errors = 0;
    std::uint32_t corrected_persistent_errors = 0;

    [[nodiscard]] constexpr HealthLevel life_level() const { return level(0); }
    [[nodiscard]] constexpr HealthLevel temperature_level() const { return level(2); }

    static constexpr std::string_view kName = "Get Health Info response";
    static constexpr std::size_t kWireSize = 18;
    static constexpr auto fields =
        std::tuple{field("health_status", &GetHealthInfoResponse::health_status),
                   field("media_status", &GetHealthInfoResponse::media_status),
                   field("additional_status", &GetHealthInfoResponse::additional_status),
                   field("life_used", &GetHealthInfoResponse::life_used),
                   field("temperature", &GetHealthInfoResponse::temperature),
                   field("dirty_shutdowns", &GetHealthInfoResponse::dirty_shutdowns),
                   field("corrected_volatile_errors", &GetHealthInfoResponse::corrected_volatile_errors),
                   field("corrected_persistent_errors", &GetHealthInfoResponse::corrected_persistent_errors)};
    friend bool operator==(const GetHealthInfoResponse&, const GetHealthInfoResponse&) = default;

  private:
    [[nodiscard]] constexpr HealthLevel level(unsigned shift) const {
        return static_cast<HealthLevel>((additional_status >> shift) & 3);
    }
};

using GetHealthInfo =
    Command<Opcode::kGetHealthInfo, "Get Health Info", NoPayload, GetHealthInfoResponse, kRepeatable>;
using IdentifyMemoryDevice = Command<Opcode::kIdentifyMemoryDevice, "Identify Memory Device", NoPayload,
                                     IdentifyMemoryDeviceResponse, kRepeatable>;
using Sanitize = Command<Opcode::kSanitize, "Sanitize", NoPayload, NoPayload, kInBackground>;
using SecureErase = Command<Opcode::kSecureErase, "Secure Erase", NoPayload, NoPayload, kInBackground>;

}  // namespace memtide::fmapi

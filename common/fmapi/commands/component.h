#pragma once

#include <cstdint>
#include <tuple>

#include "common/fmapi/command.h"

// Commands every component answers: switches, MLDs and LDs alike (CXL 3.1, 8.2.9.1).
namespace memtide::fmapi {

enum class ComponentType : std::uint8_t {
    kSwitch = 0x00,
    kType3 = 0x03,
    kUnknown = 0xff,  // not on the wire: the peer did not say
};

struct IdentifyResponse {
    std::uint16_t vendor = 0;  // PCIe ids
    std::uint16_t device = 0;
    std::uint16_t subsystem_vendor = 0;
    std::uint16_t subsystem = 0;
    std::uint64_t serial = 0;
    std::uint8_t max_message_size = 0;                       // n: 2^n bytes
    ComponentType component_type = ComponentType::kUnknown;  // CXL 2.0 components do not send it

    static constexpr std::string_view kName = "Identify response";
    static constexpr std::size_t kWireSize = 18;
    static constexpr auto fields =
        std::tuple{field("vendor", &IdentifyResponse::vendor),
                   field("device", &IdentifyResponse::device),
                   field("subsystem_vendor", &IdentifyResponse::subsystem_vendor),
                   field("subsystem", &IdentifyResponse::subsystem),
                   field("serial", &IdentifyResponse::serial),
                   field("max_message_size", &IdentifyResponse::max_message_size),
                   optional_tail(field("component_type", &IdentifyResponse::component_type))};
    friend bool operator==(const IdentifyResponse&, const IdentifyResponse&) = default;
};

struct BackgroundOperationStatusResponse {
    std::uint8_t status = 0;                        // [0] running, [7:1] percent complete
    Opcode opcode{};                                // of the running or last operation; 0 when there was none
    ReturnCode return_code = ReturnCode::kSuccess;  // valid when not running
    std::uint16_t vendor_status = 0;

    [[nodiscard]] constexpr bool running() const { return (status & 1u) != 0; }
    [[nodiscard]] constexpr unsigned percent() const { return status >> 1; }
    static constexpr std::uint8_t make_status(bool running, unsigned percent) {
        return static_cast<std::uint8_t>((percent > 100 ? 100u : percent) << 1 | (running ? 1u : 0u));
    }

    static constexpr std::string_view kName = "Background Operation Status response";
    static constexpr std::size_t kWireSize = 8;
    static constexpr auto fields =
        std::tuple{field("status", &BackgroundOperationStatusResponse::status), reserved(1),
                   field("opcode", &BackgroundOperationStatusResponse::opcode),
                   field("return_code", &BackgroundOperationStatusResponse::return_code),
                   field("vendor_status", &BackgroundOperationStatusResponse::vendor_status)};
    friend bool operator==(const BackgroundOperationStatusResponse&,
                           const BackgroundOperationStatusResponse&) = default;
};

// Largest response the component sends is 2^limit bytes, header included; at least 2^8.
struct ResponseMessageLimit {
    std::uint8_t limit = 0;

    static constexpr std::string_view kName = "response message limit";
    static constexpr std::size_t kWireSize = 1;
    static constexpr auto fields = std::tuple{field("limit", &ResponseMessageLimit::limit)};
    friend bool operator==(const ResponseMessageLimit&, const ResponseMessageLimit&) = default;
};

// Newer components answer what they set, older ones answer nothing.
struct SetResponseMessageLimitResponse {
    std::uint8_t limit = 0;

    static constexpr std::string_view kName = "Set Response Message Limit response";
    static constexpr std::size_t kWireSize = 1;
    static constexpr auto fields =
        std::tuple{optional_tail(field("limit", &SetResponseMessageLimitResponse::limit))};
    friend bool operator==(const SetResponseMessageLimitResponse&,
                           const SetResponseMessageLimitResponse&) = default;
};

using Identify = Command<Opcode::kIdentify, "Identify", NoPayload, IdentifyResponse, kRepeatable>;
using BackgroundOperationStatus = Command<Opcode::kBackgroundOperationStatus, "Background Operation Status",
                                          NoPayload, BackgroundOperationStatusResponse, kRepeatable>;
using GetResponseMessageLimit = Command<Opcode::kGetResponseMessageLimit, "Get Response Message Limit",
                                        NoPayload, ResponseMessageLimit, kRepeatable>;
using SetResponseMessageLimit = Command<Opcode::kSetResponseMessageLimit, "Set Response Message Limit",
                                        ResponseMessageLimit, SetResponseMessageLimitResponse, kRepeatable>;
using RequestAbortBackgroundOperation = Command<Opcode::kRequestAbortBackgroundOperation,
                                                "Request Abort Background Operation", NoPayload, NoPayload>;

}  // namespace memtide::fmapi

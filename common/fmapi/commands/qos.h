#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "common/fmapi/command.h"

// Quality of service of an MLD (CXL 3.1, 7.6.7.4.4 to 7.6.7.4.10): what its FM-owned LD answers. How it
// works is in 3.3.4.3.
namespace memtide::fmapi {

// Bits of QosControl::telemetry.
inline constexpr std::uint8_t kEgressPortCongestion = 0x01;
inline constexpr std::uint8_t kTemporaryThroughputReduction = 0x02;

// The response of Get QoS Control, and request and response of Set QoS Control.
struct QosControl {
    std::uint8_t telemetry = 0;                     // what is enabled
    std::uint8_t egress_moderate_percent = 10;      // back pressure from which egress is moderately congested
    std::uint8_t egress_severe_percent = 25;        // and severely; 1 to 100, more than the above
    std::uint8_t backpressure_sample_interval = 8;  // nanoseconds; 0: back pressure is not sampled
    std::uint16_t request_completion_basis = 0;     // outstanding requests that are average; 0: not limited
    std::uint8_t completion_collection_interval = 64;  // nanoseconds

    static constexpr std::string_view kName = "QoS control";
    static constexpr std::size_t kWireSize = 7;
    static constexpr auto fields =
        std::tuple{field("telemetry", &QosControl::telemetry),
                   field("egress_moderate_percent", &QosControl::egress_moderate_percent),
                   field("egress_severe_percent", &QosControl::egress_severe_percent),
                   field("backpressure_sample_interval", &QosControl::backpressure_sample_interval),
                   field("request_completion_basis", &QosControl::request_completion_basis),
                   field("completion_collection_interval", &QosControl::completion_collection_interval)};
    friend bool operator==(const QosControl&, const QosControl&) = default;
};

struct GetQosStatusResponse {
    std::uint8_t backpressure_average_percent = 0;  // 0 to 100

    static constexpr std::string_view kName = "Get QoS Status response";
    static constexpr std::size_t kWireSize = 1;
    static constexpr auto fields = std::tuple{
        field("backpressure_average_percent", &GetQosStatusResponse::backpressure_average_percent)};
    friend bool operator==(const GetQosStatusResponse&, const GetQosStatusResponse&) = default;
};

// Of Get QoS Allocated BW and Get QoS BW Limit: of which LDs.
struct QosFractionsRequest {
    std::uint8_t lds = 255;  // how many
    std::uint8_t first_ld = 0;

    static constexpr std::string_view kName = "QoS fractions request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields = std::tuple{field("lds", &QosFractionsRequest::lds),
                                              field("first_ld", &QosFractionsRequest::first_ld)};
    friend bool operator==(const QosFractionsRequest&, const QosFractionsRequest&) = default;
};

// Of Get and Set QoS Allocated BW: the share of the device's bandwidth that each LD is promised; of Get and
// Set QoS BW Limit: the share beyond which it is throttled. By LD id from first_ld on, in 256ths; 0: none, or
// no limit.
struct QosFractions {
    std::uint8_t first_ld = 0;
    std::vector<std::uint8_t> fractions;

    static constexpr std::string_view kName = "QoS fractions";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields = std::tuple{count<std::uint8_t>("number_of_lds", &QosFractions::fractions),
                                              field("first_ld", &QosFractions::first_ld),
                                              list<std::uint8_t>("fractions", &QosFractions::fractions)};
    friend bool operator==(const QosFractions&, const QosFractions&) = default;
};

using GetQosControl = Command<Opcode::kGetQosControl, "Get QoS Control", NoPayload, QosControl, kRepeatable>;
using SetQosControl = Command<Opcode::kSetQosControl, "Set QoS Control", QosControl, QosControl, kRepeatable>;
using GetQosStatus =
    Command<Opcode::kGetQosStatus, "Get QoS Status", NoPayload, GetQosStatusResponse, kRepeatable>;
using GetQosAllocatedBandwidth = Command<Opcode::kGetQosAllocatedBandwidth, "Get QoS Allocated Bandwidth",
                                         QosFractionsRequest, QosFractions, kRepeatable>;
using SetQosAllocatedBandwidth = Command<Opcode::kSetQosAllocatedBandwidth, "Set QoS Allocated Bandwidth",
                                         QosFractions, QosFractions, kRepeatable>;
using GetQosBandwidthLimit = Command<Opcode::kGetQosBandwidthLimit, "Get QoS Bandwidth Limit",
                                     QosFractionsRequest, QosFractions, kRepeatable>;
using SetQosBandwidthLimit = Command<Opcode::kSetQosBandwidthLimit, "Set QoS Bandwidth Limit", QosFractions,
                                     QosFractions, kRepeatable>;

}  // namespace memtide::fmapi

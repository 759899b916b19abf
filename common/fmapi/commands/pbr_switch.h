#pragma once

#include <cstdint>
#include <tuple>

#include "common/fmapi/command.h"

// Port-based routing switches (CXL 3.1, 7.7.13): identify and PID binding. A PID is a 12-bit port id of the
// fabric.
namespace memtide::fmapi {

inline constexpr std::uint16_t kNoPid = 0xfff;
inline constexpr std::uint16_t kMaxPid = 0xffe;

// Bits of IdentifyPbrSwitchResponse::routing_modes.
inline constexpr std::uint8_t kRandomRouting = 0x01;
inline constexpr std::uint8_t kCongestionAvoidance = 0x02;
inline constexpr std::uint8_t kAdvancedCongestionAvoidance = 0x04;

struct IdentifyPbrSwitchResponse {
    std::uint64_t gae_vcss = 0;      // bit n: VCS n has a global memory access endpoint
    std::uint8_t drts = 0;           // DPID routing tables, at least one
    std::uint8_t rgts = 0;           // routing group tables
    std::uint8_t routing_modes = 0;  // dynamic ones that it can do

    static constexpr std::string_view kName = "Identify PBR Switch response";
    static constexpr std::size_t kWireSize = 12;
    static constexpr auto fields = std::tuple{
        field("gae_vcss", &IdentifyPbrSwitchResponse::gae_vcss),
        field("drts", &IdentifyPbrSwitchResponse::drts), field("rgts", &IdentifyPbrSwitchResponse::rgts),
        reserved(1), field("routing_modes", &IdentifyPbrSwitchResponse::routing_modes)};
    friend bool operator==(const IdentifyPbrSwitchResponse&, const IdentifyPbrSwitchResponse&) = default;
};

struct GetPidBindingRequest {
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;

    static constexpr std::string_view kName = "Get PID Binding request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields =
        std::tuple{field("vcs", &GetPidBindingRequest::vcs), field("vppb", &GetPidBindingRequest::vppb)};
    friend bool operator==(const GetPidBindingRequest&, const GetPidBindingRequest&) = default;
};

// What a binding costs, in the units of the ACPI HMAT: entry times base unit.
struct RouteCost {
    std::uint64_t latency_base_unit = 0;  // picoseconds
    std::uint16_t latency_entry = 0;
    std::uint64_t bandwidth_base_unit = 0;  // MB/s
    std::uint16_t bandwidth_entry = 0;

    static constexpr std::string_view kName = "route cost";
    static constexpr std::size_t kWireSize = 20;
    static constexpr auto fields = std::tuple{field("latency_base_unit", &RouteCost::latency_base_unit),
                                              field("latency_entry", &RouteCost::latency_entry),
                                              field("bandwidth_base_unit", &RouteCost::bandwidth_base_unit),
                                              field("bandwidth_entry", &RouteCost::bandwidth_entry)};
    friend bool operator==(const RouteCost&, const RouteCost&) = default;
};

struct GetPidBindingResponse {
    std::uint16_t pid = kNoPid;  // kNoPid: the vPPB is not bound to one
    RouteCost cost;

    static constexpr std::string_view kName = "Get PID Binding response";
    static constexpr std::size_t kWireSize = 24;
    static constexpr auto fields = std::tuple{field("pid", &GetPidBindingResponse::pid), reserved(2),
                                              field("cost", &GetPidBindingResponse::cost)};
    friend bool operator==(const GetPidBindingResponse&, const GetPidBindingResponse&) = default;
};

enum class PidBindingOperation : std::uint8_t { kBind = 0, kUnbind = 1 };

struct ConfigurePidBindingRequest {
    PidBindingOperation operation = PidBindingOperation::kBind;
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
    std::uint16_t pid = 0;  // of what is to be bound, elsewhere in the fabric
    RouteCost cost;

    static constexpr std::string_view kName = "Configure PID Binding request";
    static constexpr std::size_t kWireSize = 28;
    static constexpr auto fields = std::tuple{field("operation", &ConfigurePidBindingRequest::operation),
                                              field("vcs", &ConfigurePidBindingRequest::vcs),
                                              field("vppb", &ConfigurePidBindingRequest::vppb),
                                              reserved(1),
                                              field("pid", &ConfigurePidBindingRequest::pid),
                                              reserved(2),
                                              field("cost", &ConfigurePidBindingRequest::cost)};
    friend bool operator==(const ConfigurePidBindingRequest&, const ConfigurePidBindingRequest&) = default;
};

using IdentifyPbrSwitch = Command<Opcode::kIdentifyPbrSwitch, "Identify PBR Switch", NoPayload,
                                  IdentifyPbrSwitchResponse, kRepeatable>;
using GetPidBinding = Command<Opcode::kGetPidBinding, "Get PID Binding", GetPidBindingRequest,
                              GetPidBindingResponse, kRepeatable>;
using ConfigurePidBinding = Command<Opcode::kConfigurePidBinding, "Configure PID Binding",
                                    ConfigurePidBindingRequest, NoPayload, kInBackground>;

}  // namespace memtide::fmapi

#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "common/fmapi/command.h"

// Physical switch command set (CXL 3.1, 7.6.7.1).
namespace memtide::fmapi {

// 256 flags, bit n of byte n / 8 for id n.
struct IdBitmap {
    std::array<std::uint8_t, 32> bytes{};

    [[nodiscard]] constexpr bool test(std::uint8_t id) const { return (bytes[id / 8] >> (id % 8) & 1) != 0; }
    constexpr void set(std::uint8_t id) {
        bytes[id / 8] = static_cast<std::uint8_t>(bytes[id / 8] | 1u << (id % 8));
    }

    static constexpr std::string_view kName = "id bitmap";
    static constexpr std::size_t kWireSize = 32;
    static constexpr auto fields = std::tuple{field("bytes", &IdBitmap::bytes)};
    friend bool operator==(const IdBitmap&, const IdBitmap&) = default;
};

struct IdentifySwitchDeviceResponse {
    std::uint8_t ingress_port = 0;  // where this request came in
    std::uint8_t physical_ports = 0;
    std::uint8_t vcss = 0;
    IdBitmap active_ports;
    IdBitmap active_vcss;
    std::uint16_t total_vppbs = 0;
    std::uint16_t bound_vppbs = 0;
    std::uint8_t hdm_decoders = 0;  // per upstream port; 0 means 256 or that none are there

    static constexpr std::string_view kName = "Identify Switch Device response";
    static constexpr std::size_t kWireSize = 73;
    static constexpr auto fields =
        std::tuple{field("ingress_port", &IdentifySwitchDeviceResponse::ingress_port),
                   reserved(1),
                   field("physical_ports", &IdentifySwitchDeviceResponse::physical_ports),
                   field("vcss", &IdentifySwitchDeviceResponse::vcss),
                   field("active_ports", &IdentifySwitchDeviceResponse::active_ports),
                   field("active_vcss", &IdentifySwitchDeviceResponse::active_vcss),
                   field("total_vppbs", &IdentifySwitchDeviceResponse::total_vppbs),
                   field("bound_vppbs", &IdentifySwitchDeviceResponse::bound_vppbs),
                   field("hdm_decoders", &IdentifySwitchDeviceResponse::hdm_decoders)};
    friend bool operator==(const IdentifySwitchDeviceResponse&,
                           const IdentifySwitchDeviceResponse&) = default;
};

struct GetPhysicalPortStateRequest {
    std::vector<std::uint8_t> ports;  // ids

    static constexpr std::string_view kName = "Get Physical Port State request";
    static constexpr std::size_t kWireSize = 1;
    static constexpr auto fields =
        std::tuple{count<std::uint8_t>("number_of_ports", &GetPhysicalPortStateRequest::ports),
                   list<std::uint8_t>("ports", &GetPhysicalPortStateRequest::ports)};
    friend bool operator==(const GetPhysicalPortStateRequest&, const GetPhysicalPortStateRequest&) = default;
};

enum class PortConfigState : std::uint8_t {  // low nibble
    kDisabled = 0x0,
    kBindInProgress = 0x1,
    kUnbindInProgress = 0x2,
    kDownstream = 0x3,
    kUpstream = 0x4,
    kFabric = 0x5,
    kInvalidPort = 0xf,  // answered for a port id that does not exist
};

enum class ConnectedDeviceType : std::uint8_t {
    kNone = 0x00,
    kPcie = 0x01,
    kType1 = 0x02,
    kType2 = 0x03,
    kType3Sld = 0x04,
    kType3Mld = 0x05,
};

// Connected device mode: 0 no CXL or nothing, 1 CXL 1.1 (RCD), 2 CXL 2.0 (68-byte flits, VH), 3 and up 256 B.
enum class ConnectedDeviceMode : std::uint8_t { kNone = 0, kCxl11 = 1, kCxl20 = 2, kStandard256 = 3 };

// Bits of PhysicalPort::link_flags.
inline constexpr std::uint16_t kLinkLaneReversal = 1u << 0;
inline constexpr std::uint16_t kLinkPerstAsserted = 1u << 1;
inline constexpr std::uint16_t kLinkPresent = 1u << 2;
inline constexpr std::uint16_t kLinkPowerOff = 1u << 3;

struct PhysicalPort {
    std::uint8_t port = 0;
    PortConfigState config_state = PortConfigState::kDisabled;
    ConnectedDeviceMode device_mode = ConnectedDeviceMode::kNone;
    ConnectedDeviceType device_type = ConnectedDeviceType::kNone;
    std::uint8_t supported_cxl_modes = 0;    // bit 0 CXL 1.1, bit 1 CXL 2.0, bit 2 and up 256-byte flit modes
    std::uint8_t max_link_width = 0;         // lanes
    std::uint8_t negotiated_link_width = 0;  // lanes; 0 when the link is down
    std::uint8_t supported_link_speeds = 0;  // bit 0 2.5 GT/s .. bit 4 32 GT/s, bit 5 64 GT/s
    std::uint8_t max_link_speed = 0;         // 1 = 2.5 GT/s .. 5 = 32 GT/s
    std::uint8_t current_link_speed = 0;
    std::uint8_t ltssm_state = 0;  // 0 Detect .. 4 L0 .. 9 Hot Reset
    std::uint8_t first_lane = 0;
    std::uint16_t link_flags = 0;    // kLink... bits
    std::uint8_t supported_lds = 0;  // of a connected MLD; 0 otherwise

    static constexpr std::string_view kName = "physical port state";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields =
        std::tuple{field("port", &PhysicalPort::port),
                   field("config_state", &PhysicalPort::config_state),
                   field("device_mode", &PhysicalPort::device_mode),
                   reserved(1),
                   field("device_type", &PhysicalPort::device_type),
                   field("supported_cxl_modes", &PhysicalPort::supported_cxl_modes),
                   field("max_link_width", &PhysicalPort::max_link_width),
                   field("negotiated_link_width", &PhysicalPort::negotiated_link_width),
                   field("supported_link_speeds", &PhysicalPort::supported_link_speeds),
                   field("max_link_speed", &PhysicalPort::max_link_speed),
                   field("current_link_speed", &PhysicalPort::current_link_speed),
                   field("ltssm_state", &PhysicalPort::ltssm_state),
                   field("first_lane", &PhysicalPort::first_lane),
                   field("link_flags", &PhysicalPort::link_flags),
                   field("supported_lds", &PhysicalPort::supported_lds)};
    friend bool operator==(const PhysicalPort&, const PhysicalPort&) = default;
};

struct GetPhysicalPortStateResponse {
    std::vector<PhysicalPort> ports;  // in the order they were asked for

    static constexpr std::string_view kName = "Get Physical Port State response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{count<std::uint8_t>("number_of_ports", &GetPhysicalPortStateResponse::ports), reserved(3),
                   list<std::uint8_t>("ports", &GetPhysicalPortStateResponse::ports)};
    friend bool operator==(const GetPhysicalPortStateResponse&,
                           const GetPhysicalPortStateResponse&) = default;
};

enum class PortOperation : std::uint8_t { kAssertPerst = 0, kDeassertPerst = 1, kResetPpb = 2 };

struct PhysicalPortControlRequest {
    std::uint8_t port = 0;  // PPB id
    PortOperation operation = PortOperation::kAssertPerst;

    static constexpr std::string_view kName = "Physical Port Control request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields = std::tuple{field("port", &PhysicalPortControlRequest::port),
                                              field("operation", &PhysicalPortControlRequest::operation)};
    friend bool operator==(const PhysicalPortControlRequest&, const PhysicalPortControlRequest&) = default;
};

// A read or write of one dword of a bridge's configuration space.
struct PpbConfigRequest {
    std::uint8_t port = 0;
    // [7:0] register (dword) number, [11:8] extended register number, [15:12] first dword byte enable,
    // [22:16] reserved, [23] 0 read, 1 write
    std::uint32_t access = 0;
    std::uint32_t write_data = 0;

    [[nodiscard]] constexpr bool is_write() const { return (access >> 23 & 1) != 0; }
    // Byte offset in the 4 KiB configuration space, a multiple of 4.
    [[nodiscard]] constexpr std::uint16_t offset() const {
        return static_cast<std::uint16_t>((access & 0xfff) << 2);
    }
    [[nodiscard]] constexpr std::uint8_t byte_enable() const {
        return static_cast<std::uint8_t>(access >> 12 & 0xf);
    }
    static constexpr std::uint32_t make_access(std::uint16_t offset, bool write,
                                               std::uint8_t byte_enable = 0xf) {
        return (offset >> 2 & 0xfffu) | (byte_enable & 0xfu) << 12 | (write ? 1u << 23 : 0u);
    }

    static constexpr std::string_view kName = "Send PPB CXL.io Configuration request";
    static constexpr std::size_t kWireSize = 8;
    static constexpr auto fields =
        std::tuple{field("port", &PpbConfigRequest::port), field24("access", &PpbConfigRequest::access),
                   field("write_data", &PpbConfigRequest::write_data)};
    friend bool operator==(const PpbConfigRequest&, const PpbConfigRequest&) = default;
};

struct PpbConfigResponse {
    std::uint32_t read_data = 0;

    static constexpr std::string_view kName = "Send PPB CXL.io Configuration response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields = std::tuple{field("read_data", &PpbConfigResponse::read_data)};
    friend bool operator==(const PpbConfigResponse&, const PpbConfigResponse&) = default;
};

using IdentifySwitchDevice = Command<Opcode::kIdentifySwitchDevice, "Identify Switch Device", NoPayload,
                                     IdentifySwitchDeviceResponse, kRepeatable>;
using GetPhysicalPortState = Command<Opcode::kGetPhysicalPortState, "Get Physical Port State",
                                     GetPhysicalPortStateRequest, GetPhysicalPortStateResponse, kRepeatable>;
using PhysicalPortControl =
    Command<Opcode::kPhysicalPortControl, "Physical Port Control", PhysicalPortControlRequest, NoPayload>;
using SendPpbConfigRequest = Command<Opcode::kSendPpbConfigRequest, "Send PPB CXL.io Configuration Request",
                                     PpbConfigRequest, PpbConfigResponse>;

}  // namespace memtide::fmapi

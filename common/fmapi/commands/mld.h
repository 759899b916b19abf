#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "common/base/bytes.h"
#include "common/fmapi/command.h"
#include "common/fmapi/mctp.h"

// MLD port (CXL 3.1, 7.6.7.3) and MLD component (7.6.7.4) command sets.
namespace memtide::fmapi {

enum class TunnelTarget : std::uint8_t {
    kPort = 0,  // the device behind a port of the switch: an SLD, or the FM-owned LD of an MLD
    kLd = 1,    // an LD of the MLD that receives it
};

// A CCI message carried inside another one: request and response side.
struct TunnelRequest {
    std::uint8_t id = 0;  // port or LD
    TunnelTarget target = TunnelTarget::kPort;
    MctpType type = MctpType::kFmApi;  // of the message inside
    std::vector<std::byte> command;    // an encoded message

    static constexpr std::string_view kName = "Tunnel Management Command request";
    static constexpr std::size_t kWireSize = 5;
    static constexpr auto fields = std::tuple{
        field("id", &TunnelRequest::id), field("target", &TunnelRequest::target),
        count<std::uint16_t>("command_size", &TunnelRequest::command), field("type", &TunnelRequest::type),
        list<std::uint16_t>("command", &TunnelRequest::command)};
    friend bool operator==(const TunnelRequest&, const TunnelRequest&) = default;
};

struct TunnelResponse {
    MctpType type = MctpType::kFmApi;  // some peers leave it 0
    std::vector<std::byte> response;

    static constexpr std::string_view kName = "Tunnel Management Command response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{count<std::uint16_t>("response_size", &TunnelResponse::response),
                   field("type", &TunnelResponse::type), reserved(1),
                   list<std::uint16_t>("response", &TunnelResponse::response)};
    friend bool operator==(const TunnelResponse&, const TunnelResponse&) = default;
};

// A read or write of one dword of an LD's configuration space, by the switch in the FM's name.
struct LdConfigRequest {
    std::uint8_t port = 0;     // where the MLD is
    std::uint32_t access = 0;  // as PpbConfigRequest::access
    std::uint16_t ld = 0;
    std::uint32_t write_data = 0;

    static constexpr std::string_view kName = "Send LD CXL.io Configuration request";
    static constexpr std::size_t kWireSize = 12;
    static constexpr auto fields = std::tuple{
        field("port", &LdConfigRequest::port), field24("access", &LdConfigRequest::access),
        field("ld", &LdConfigRequest::ld), reserved(2), field("write_data", &LdConfigRequest::write_data)};
    friend bool operator==(const LdConfigRequest&, const LdConfigRequest&) = default;
};

struct LdConfigResponse {
    std::uint32_t read_data = 0;

    static constexpr std::string_view kName = "Send LD CXL.io Configuration response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields = std::tuple{field("read_data", &LdConfigResponse::read_data)};
    friend bool operator==(const LdConfigResponse&, const LdConfigResponse&) = default;
};

// The largest read or write of LdMemoryRequest, in bytes (CXL 3.1, 7.6.7.3.3).
inline constexpr std::uint16_t kMaxLdMemoryTransfer = 4096;

// A read or write of an LD's memory-mapped registers, by the switch in the FM's name.
struct LdMemoryRequest {
    std::uint8_t port = 0;  // where the MLD is
    // [11:0] reserved, [15:12] first and [19:16] last dword byte enable, [22:20] reserved, [23] 0 read, 1
    // write
    std::uint32_t access = 0;
    std::uint16_t ld = 0;
    std::uint16_t length = 0;  // bytes, of the read or write
    std::uint64_t address = 0;
    std::vector<std::uint8_t> write_data;

    [[nodiscard]] constexpr bool is_write() const { return (access & kWrite) != 0; }
    [[nodiscard]] std::size_t data_length() const { return is_write() ? length : 0; }
    static constexpr std::uint32_t kWrite = 1u << 23;

    static constexpr std::string_view kName = "Send LD CXL.io Memory request";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields =
        std::tuple{field("port", &LdMemoryRequest::port),
                   field24("access", &LdMemoryRequest::access),
                   field("ld", &LdMemoryRequest::ld),
                   field("length", &LdMemoryRequest::length),
                   field("address", &LdMemoryRequest::address),
                   list("write_data", &LdMemoryRequest::write_data, &LdMemoryRequest::data_length)};
    friend bool operator==(const LdMemoryRequest&, const LdMemoryRequest&) = default;
};

struct LdMemoryResponse {
    std::vector<std::uint8_t> read_data;

    static constexpr std::string_view kName = "Send LD CXL.io Memory response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{count<std::uint16_t>("return_size", &LdMemoryResponse::read_data), reserved(2),
                   list<std::uint16_t>("read_data", &LdMemoryResponse::read_data)};
    friend bool operator==(const LdMemoryResponse&, const LdMemoryResponse&) = default;
};

struct GetLdInfoResponse {
    std::uint64_t memory_size = 0;   // bytes, of the whole MLD
    std::uint16_t ld_count = 0;      // LDs that can exist
    std::uint8_t qos_telemetry = 0;  // [0] egress port congestion, [1] temporary throughput reduction

    static constexpr std::string_view kName = "Get LD Info response";
    static constexpr std::size_t kWireSize = 11;
    static constexpr auto fields = std::tuple{field("memory_size", &GetLdInfoResponse::memory_size),
                                              field("ld_count", &GetLdInfoResponse::ld_count),
                                              field("qos_telemetry", &GetLdInfoResponse::qos_telemetry)};
    friend bool operator==(const GetLdInfoResponse&, const GetLdInfoResponse&) = default;
};

enum class LdGranularity : std::uint8_t { k256MiB = 0, k512MiB = 1, k1GiB = 2 };
// 0 for a granularity that does not exist.
constexpr Bytes bytes_of(LdGranularity granularity) {
    return static_cast<unsigned>(granularity) > 2
               ? Bytes{0}
               : mebibytes(std::uint64_t{256} << static_cast<unsigned>(granularity));
}

// Memory of one LD in multiples of the granularity; 0 and 0: the LD has none. Range 2 is used by devices
// whose memory is in two parts (CXL 3.1, 7.6.7.4.2).
struct LdAllocation {
    std::uint64_t range1 = 0;
    std::uint64_t range2 = 0;

    static constexpr std::string_view kName = "LD allocation";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields =
        std::tuple{field("range1", &LdAllocation::range1), field("range2", &LdAllocation::range2)};
    friend bool operator==(const LdAllocation&, const LdAllocation&) = default;
};

// CXL 2.0 components take no request payload: all LDs.
struct GetLdAllocationsRequest {
    std::uint8_t first_ld = 0;
    std::uint8_t limit = 255;

    static constexpr std::string_view kName = "Get LD Allocations request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields =
        std::tuple{optional_tail(field("first_ld", &GetLdAllocationsRequest::first_ld)),
                   optional_tail(field("limit", &GetLdAllocationsRequest::limit))};
    friend bool operator==(const GetLdAllocationsRequest&, const GetLdAllocationsRequest&) = default;
};

struct GetLdAllocationsResponse {
    std::uint8_t total_lds = 0;  // that the device has
    LdGranularity granularity = LdGranularity::k256MiB;
    std::uint8_t first_ld = 0;              // of the list
    std::vector<LdAllocation> allocations;  // by LD id from first_ld on

    static constexpr std::string_view kName = "Get LD Allocations response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{field("total_lds", &GetLdAllocationsResponse::total_lds),
                   field("granularity", &GetLdAllocationsResponse::granularity),
                   field("first_ld", &GetLdAllocationsResponse::first_ld),
                   count<std::uint8_t>("list_length", &GetLdAllocationsResponse::allocations),
                   list<std::uint8_t>("allocations", &GetLdAllocationsResponse::allocations)};
    friend bool operator==(const GetLdAllocationsResponse&, const GetLdAllocationsResponse&) = default;
};

// Both the request of Set LD Allocations and its response, which says what was allocated.
struct SetLdAllocationsPayload {
    std::uint8_t first_ld = 0;
    std::vector<LdAllocation> allocations;

    static constexpr std::string_view kName = "Set LD Allocations payload";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{count<std::uint8_t>("number_of_lds", &SetLdAllocationsPayload::allocations),
                   field("first_ld", &SetLdAllocationsPayload::first_ld), reserved(2),
                   list<std::uint8_t>("allocations", &SetLdAllocationsPayload::allocations)};
    friend bool operator==(const SetLdAllocationsPayload&, const SetLdAllocationsPayload&) = default;
};

using TunnelManagementCommand =
    Command<Opcode::kTunnelManagementCommand, "Tunnel Management Command", TunnelRequest, TunnelResponse>;
using SendLdConfigRequest = Command<Opcode::kSendLdConfigRequest, "Send LD CXL.io Configuration Request",
                                    LdConfigRequest, LdConfigResponse>;
using SendLdMemoryRequest =
    Command<Opcode::kSendLdMemoryRequest, "Send LD CXL.io Memory Request", LdMemoryRequest, LdMemoryResponse>;
using GetLdInfo = Command<Opcode::kGetLdInfo, "Get LD Info", NoPayload, GetLdInfoResponse, kRepeatable>;
using GetLdAllocations = Command<Opcode::kGetLdAllocations, "Get LD Allocations", GetLdAllocationsRequest,
                                 GetLdAllocationsResponse, kRepeatable>;
using SetLdAllocations = Command<Opcode::kSetLdAllocations, "Set LD Allocations", SetLdAllocationsPayload,
                                 SetLdAllocationsPayload, kRepeatable>;

}  // namespace memtide::fmapi

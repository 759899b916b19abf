#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "common/fmapi/command.h"

// Virtual switch command set (CXL 3.1, 7.6.7.2).
namespace memtide::fmapi {

struct GetVirtualSwitchInfoRequest {
    std::uint8_t first_vppb = 0;    // of each VCS
    std::uint8_t vppb_limit = 255;  // entries per VCS at most
    std::vector<std::uint8_t> vcss;

    static constexpr std::string_view kName = "Get Virtual CXL Switch Info request";
    static constexpr std::size_t kWireSize = 3;
    static constexpr auto fields =
        std::tuple{field("first_vppb", &GetVirtualSwitchInfoRequest::first_vppb),
                   field("vppb_limit", &GetVirtualSwitchInfoRequest::vppb_limit),
                   count<std::uint8_t>("number_of_vcss", &GetVirtualSwitchInfoRequest::vcss),
                   list<std::uint8_t>("vcss", &GetVirtualSwitchInfoRequest::vcss)};
    friend bool operator==(const GetVirtualSwitchInfoRequest&, const GetVirtualSwitchInfoRequest&) = default;
};

enum class VcsState : std::uint8_t { kDisabled = 0x00, kEnabled = 0x01, kInvalidVcs = 0xff };

enum class VppbBinding : std::uint8_t {
    kUnbound = 0x00,
    kInProgress = 0x01,  // a bind or unbind is
    kBoundPort = 0x02,   // to a physical port
    kBoundLd = 0x03,     // to an LD of an MLD
};

struct Vppb {
    VppbBinding binding = VppbBinding::kUnbound;
    std::uint8_t port = 0xff;  // valid when bound
    std::uint8_t ld = 0xff;    // valid when bound to an LD

    static constexpr std::string_view kName = "vPPB";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields = std::tuple{field("binding", &Vppb::binding), field("port", &Vppb::port),
                                              field("ld", &Vppb::ld), reserved(1)};
    friend bool operator==(const Vppb&, const Vppb&) = default;
};

struct VirtualSwitch {
    std::uint8_t vcs = 0;
    VcsState state = VcsState::kDisabled;
    std::uint8_t upstream_port = 0;
    std::uint8_t total_vppbs = 0;  // of the VCS, whatever part of them is listed
    std::vector<Vppb> vppbs;       // from first_vppb on

    // Not on the wire: what was asked for decides how many vPPBs are listed.
    std::uint8_t first_vppb = 0;
    std::uint8_t vppb_limit = 255;
    [[nodiscard]] std::size_t listed() const {
        if (state == VcsState::kInvalidVcs || first_vppb >= total_vppbs) return 0;
        return std::min<std::size_t>(total_vppbs - first_vppb, vppb_limit);
    }

    static constexpr std::string_view kName = "VCS information block";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{field("vcs", &VirtualSwitch::vcs), field("state", &VirtualSwitch::state),
                   field("upstream_port", &VirtualSwitch::upstream_port),
                   field("total_vppbs", &VirtualSwitch::total_vppbs),
                   list("vppbs", &VirtualSwitch::vppbs, &VirtualSwitch::listed)};
    friend bool operator==(const VirtualSwitch&, const VirtualSwitch&) = default;
};

// To decode, start from what was asked: decode(bytes, GetVirtualSwitchInfoResponse::answering(request)).
struct GetVirtualSwitchInfoResponse {
    std::vector<VirtualSwitch> vcss;

    // Not on the wire.
    std::uint8_t first_vppb = 0;
    std::uint8_t vppb_limit = 255;
    void prepare(VirtualSwitch& block) const {
        block.first_vppb = first_vppb;
        block.vppb_limit = vppb_limit;
    }
    static GetVirtualSwitchInfoResponse answering(const GetVirtualSwitchInfoRequest& request) {
        return {.vcss = {}, .first_vppb = request.first_vppb, .vppb_limit = request.vppb_limit};
    }

    static constexpr std::string_view kName = "Get Virtual CXL Switch Info response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{count<std::uint8_t>("number_of_vcss", &GetVirtualSwitchInfoResponse::vcss), reserved(3),
                   list<std::uint8_t>("vcss", &GetVirtualSwitchInfoResponse::vcss)};
    friend bool operator==(const GetVirtualSwitchInfoResponse&,
                           const GetVirtualSwitchInfoResponse&) = default;
};

struct BindVppbRequest {
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
    std::uint8_t port = 0;
    std::uint16_t ld = 0xffff;  // FFFFh: the whole port

    static constexpr std::string_view kName = "Bind vPPB request";
    static constexpr std::size_t kWireSize = 6;
    static constexpr auto fields =
        std::tuple{field("vcs", &BindVppbRequest::vcs), field("vppb", &BindVppbRequest::vppb),
                   field("port", &BindVppbRequest::port), reserved(1), field("ld", &BindVppbRequest::ld)};
    friend bool operator==(const BindVppbRequest&, const BindVppbRequest&) = default;
};

enum class UnbindOption : std::uint8_t {
    kWaitForLinkDown = 0,   // wait until the host has let go
    kManagedHotRemove = 1,  // tell the host to let go, as an attention button does
    kSurpriseHotRemove = 2,
};

struct UnbindVppbRequest {
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
    UnbindOption option = UnbindOption::kWaitForLinkDown;

    static constexpr std::string_view kName = "Unbind vPPB request";
    static constexpr std::size_t kWireSize = 3;
    static constexpr auto fields =
        std::tuple{field("vcs", &UnbindVppbRequest::vcs), field("vppb", &UnbindVppbRequest::vppb),
                   field("option", &UnbindVppbRequest::option)};
    friend bool operator==(const UnbindVppbRequest&, const UnbindVppbRequest&) = default;
};

// Makes the host of a VCS see a PCIe Advanced Error Reporting event from a vPPB.
struct GenerateAerEventRequest {
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
    std::uint32_t error_type = 0;  // AER status bit; [31] 1 correctable, 0 uncorrectable
    std::array<std::uint8_t, 32> tlp_header{};

    static constexpr std::string_view kName = "Generate AER Event request";
    static constexpr std::size_t kWireSize = 40;
    static constexpr auto fields =
        std::tuple{field("vcs", &GenerateAerEventRequest::vcs), field("vppb", &GenerateAerEventRequest::vppb),
                   reserved(2), field("error_type", &GenerateAerEventRequest::error_type),
                   field("tlp_header", &GenerateAerEventRequest::tlp_header)};
    friend bool operator==(const GenerateAerEventRequest&, const GenerateAerEventRequest&) = default;
};

using GetVirtualSwitchInfo = Command<Opcode::kGetVirtualSwitchInfo, "Get Virtual CXL Switch Info",
                                     GetVirtualSwitchInfoRequest, GetVirtualSwitchInfoResponse, kRepeatable>;
using BindVppb = Command<Opcode::kBindVppb, "Bind vPPB", BindVppbRequest, NoPayload, kInBackground>;
using UnbindVppb = Command<Opcode::kUnbindVppb, "Unbind vPPB", UnbindVppbRequest, NoPayload, kInBackground>;
using GenerateAerEvent =
    Command<Opcode::kGenerateAerEvent, "Generate AER Event", GenerateAerEventRequest, NoPayload>;

}  // namespace memtide::fmapi

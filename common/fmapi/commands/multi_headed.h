#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "common/fmapi/command.h"

// Multi-headed device command set (CXL 3.1, 7.6.7.5): one device that is connected at several ports, its
// heads, each of which has some of the logical devices of the device's one pool.
namespace memtide::fmapi {

// In an LD map: the LD is not assigned to a head.
inline constexpr std::uint8_t kNoHead = 0xff;

struct GetMultiHeadedInfoRequest {
    std::uint8_t first_ld = 0;
    std::uint8_t limit = 255;  // entries of the LD map, at least 1

    static constexpr std::string_view kName = "Get Multi-Headed Info request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields = std::tuple{field("first_ld", &GetMultiHeadedInfoRequest::first_ld),
                                              field("limit", &GetMultiHeadedInfoRequest::limit)};
    friend bool operator==(const GetMultiHeadedInfoRequest&, const GetMultiHeadedInfoRequest&) = default;
};

struct GetMultiHeadedInfoResponse {
    std::uint8_t total_lds = 0;  // in the pool, of all heads
    std::uint8_t heads = 0;
    std::uint8_t first_ld = 0;         // of the map
    std::vector<std::uint8_t> ld_map;  // by LD id from first_ld on: port number of its head, or kNoHead

    static constexpr std::string_view kName = "Get Multi-Headed Info response";
    static constexpr std::size_t kWireSize = 8;
    static constexpr auto fields =
        std::tuple{field("total_lds", &GetMultiHeadedInfoResponse::total_lds),
                   field("heads", &GetMultiHeadedInfoResponse::heads),
                   reserved(2),
                   field("first_ld", &GetMultiHeadedInfoResponse::first_ld),
                   count<std::uint8_t>("ld_map_length", &GetMultiHeadedInfoResponse::ld_map),
                   reserved(2),
                   list<std::uint8_t>("ld_map", &GetMultiHeadedInfoResponse::ld_map)};
    friend bool operator==(const GetMultiHeadedInfoResponse&, const GetMultiHeadedInfoResponse&) = default;
};

struct GetHeadInfoRequest {
    std::uint8_t first_head = 0;
    std::uint8_t heads = 1;  // how many; all of them must exist

    static constexpr std::string_view kName = "Get Head Info request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields = std::tuple{field("first_head", &GetHeadInfoRequest::first_head),
                                              field("heads", &GetHeadInfoRequest::heads)};
    friend bool operator==(const GetHeadInfoRequest&, const GetHeadInfoRequest&) = default;
};

// One head's link; encodings as in PhysicalPort.
struct HeadInfo {
    std::uint8_t port_number = 0;  // by which the LD map names the head
    std::uint8_t max_link_width = 0;
    std::uint8_t negotiated_link_width = 0;
    std::uint8_t supported_link_speeds = 0;
    std::uint8_t max_link_speed = 0;
    std::uint8_t current_link_speed = 0;
    std::uint8_t ltssm_state = 0;
    std::uint8_t first_lane = 0;
    std::uint8_t link_flags = 0;  // kLinkLaneReversal, kLinkPerstAsserted

    static constexpr std::string_view kName = "head information";
    static constexpr std::size_t kWireSize = 9;
    static constexpr auto fields =
        std::tuple{field("port_number", &HeadInfo::port_number),
                   field("max_link_width", &HeadInfo::max_link_width),
                   field("negotiated_link_width", &HeadInfo::negotiated_link_width),
                   field("supported_link_speeds", &HeadInfo::supported_link_speeds),
                   field("max_link_speed", &HeadInfo::max_link_speed),
                   field("current_link_speed", &HeadInfo::current_link_speed),
                   field("ltssm_state", &HeadInfo::ltssm_state),
                   field("first_lane", &HeadInfo::first_lane),
                   field("link_flags", &HeadInfo::link_flags)};
    friend bool operator==(const HeadInfo&, const HeadInfo&) = default;
};

struct GetHeadInfoResponse {
    std::vector<HeadInfo> heads;

    static constexpr std::string_view kName = "Get Head Info response";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{count<std::uint8_t>("number_of_heads", &GetHeadInfoResponse::heads), reserved(3),
                   list<std::uint8_t>("heads", &GetHeadInfoResponse::heads)};
    friend bool operator==(const GetHeadInfoResponse&, const GetHeadInfoResponse&) = default;
};

using GetMultiHeadedInfo = Command<Opcode::kGetMultiHeadedInfo, "Get Multi-Headed Info",
                                   GetMultiHeadedInfoRequest, GetMultiHeadedInfoResponse, kRepeatable>;
using GetHeadInfo =
    Command<Opcode::kGetHeadInfo, "Get Head Info", GetHeadInfoRequest, GetHeadInfoResponse, kRepeatable>;

}  // namespace memtide::fmapi

#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "common/fmapi/commands/dynamic_capacity.h"

// Dynamic capacity as a host sees it (CXL 3.1, 8.2.9.9.9): which extents it is offered, what it accepts, what
// it gives back. In a fabric they are asked of an LD through the tunnel.
namespace memtide::fmapi {

struct GetDynamicCapacityConfigurationRequest {
    std::uint8_t regions = kMaxDcRegions;  // how many
    std::uint8_t first_region = 0;

    static constexpr std::string_view kName = "Get Dynamic Capacity Configuration request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields =
        std::tuple{field("regions", &GetDynamicCapacityConfigurationRequest::regions),
                   field("first_region", &GetDynamicCapacityConfigurationRequest::first_region)};
    friend bool operator==(const GetDynamicCapacityConfigurationRequest&,
                           const GetDynamicCapacityConfigurationRequest&) = default;
};

// A region as the host sees it: as DcRegionConfiguration, but with its number in the CDAT and other flags.
struct HostDcRegion {
    std::uint64_t base = 0;           // DPA; a multiple of 256 MiB
    std::uint64_t decode_length = 0;  // in multiples of 256 MiB
    std::uint64_t length = 0;         // bytes that can be added, a multiple of the block size
    std::uint64_t block_size = 0;     // bytes
    std::uint32_t dsmad_handle = 0;
    std::uint8_t flags = 0;  // [0] sanitize on release

    static constexpr std::string_view kName = "DC region of a host";
    static constexpr std::size_t kWireSize = 40;
    static constexpr auto fields = std::tuple{field("base", &HostDcRegion::base),
                                              field("decode_length", &HostDcRegion::decode_length),
                                              field("length", &HostDcRegion::length),
                                              field("block_size", &HostDcRegion::block_size),
                                              field("dsmad_handle", &HostDcRegion::dsmad_handle),
                                              field("flags", &HostDcRegion::flags),
                                              reserved(3)};
    friend bool operator==(const HostDcRegion&, const HostDcRegion&) = default;
};

struct GetDynamicCapacityConfigurationResponse {
    std::uint8_t available_regions = 0;
    std::vector<HostDcRegion> regions;
    std::uint32_t supported_extents = 0;
    std::uint32_t available_extents = 0;
    std::uint32_t supported_tags = 0;
    std::uint32_t available_tags = 0;

    static constexpr std::string_view kName = "Get Dynamic Capacity Configuration response";
    static constexpr std::size_t kWireSize = 24;
    static constexpr auto fields =
        std::tuple{field("available_regions", &GetDynamicCapacityConfigurationResponse::available_regions),
                   count<std::uint8_t>("regions_returned", &GetDynamicCapacityConfigurationResponse::regions),
                   reserved(6),
                   list<std::uint8_t>("regions", &GetDynamicCapacityConfigurationResponse::regions),
                   field("supported_extents", &GetDynamicCapacityConfigurationResponse::supported_extents),
                   field("available_extents", &GetDynamicCapacityConfigurationResponse::available_extents),
                   field("supported_tags", &GetDynamicCapacityConfigurationResponse::supported_tags),
                   field("available_tags", &GetDynamicCapacityConfigurationResponse::available_tags)};
    friend bool operator==(const GetDynamicCapacityConfigurationResponse&,
                           const GetDynamicCapacityConfigurationResponse&) = default;
};

struct GetDynamicCapacityExtentListRequest {
    std::uint32_t extents = 0;  // how many at most; 0: only how many there are
    std::uint32_t first = 0;

    static constexpr std::string_view kName = "Get Dynamic Capacity Extent List request";
    static constexpr std::size_t kWireSize = 8;
    static constexpr auto fields = std::tuple{field("extents", &GetDynamicCapacityExtentListRequest::extents),
                                              field("first", &GetDynamicCapacityExtentListRequest::first)};
    friend bool operator==(const GetDynamicCapacityExtentListRequest&,
                           const GetDynamicCapacityExtentListRequest&) = default;
};

struct GetDynamicCapacityExtentListResponse {
    std::vector<DcExtent> extents;  // that the host has accepted
    std::uint32_t total = 0;
    std::uint32_t generation = 0;  // another one: the list has changed, and is to be read from its beginning

    static constexpr std::string_view kName = "Get Dynamic Capacity Extent List response";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields =
        std::tuple{count<std::uint32_t>("extents_returned", &GetDynamicCapacityExtentListResponse::extents),
                   field("total", &GetDynamicCapacityExtentListResponse::total),
                   field("generation", &GetDynamicCapacityExtentListResponse::generation), reserved(4),
                   list<std::uint32_t>("extents", &GetDynamicCapacityExtentListResponse::extents)};
    friend bool operator==(const GetDynamicCapacityExtentListResponse&,
                           const GetDynamicCapacityExtentListResponse&) = default;
};

struct UpdatedDcExtent {
    std::uint64_t dpa = 0;  // its first byte
    std::uint64_t length = 0;

    static constexpr std::string_view kName = "updated DC extent";
    static constexpr std::size_t kWireSize = 24;
    static constexpr auto fields = std::tuple{field("dpa", &UpdatedDcExtent::dpa),
                                              field("length", &UpdatedDcExtent::length), reserved(8)};
    friend bool operator==(const UpdatedDcExtent&, const UpdatedDcExtent&) = default;
};

inline constexpr std::uint8_t kDcMoreExtents = 0x01;  // of UpdatedDcExtents::flags: another request follows

// Request of Add Dynamic Capacity Response, which lists what of an offer the host takes (nothing: it refuses
// it), and of Release Dynamic Capacity, which lists what it gives back.
struct UpdatedDcExtents {
    std::vector<UpdatedDcExtent> extents;
    std::uint8_t flags = 0;

    static constexpr std::string_view kName = "updated DC extents";
    static constexpr std::size_t kWireSize = 8;
    static constexpr auto fields =
        std::tuple{count<std::uint32_t>("extent_count", &UpdatedDcExtents::extents),
                   field("flags", &UpdatedDcExtents::flags), reserved(3),
                   list<std::uint32_t>("extents", &UpdatedDcExtents::extents)};
    friend bool operator==(const UpdatedDcExtents&, const UpdatedDcExtents&) = default;
};

using GetDynamicCapacityConfiguration =
    Command<Opcode::kGetDynamicCapacityConfiguration, "Get Dynamic Capacity Configuration",
            GetDynamicCapacityConfigurationRequest, GetDynamicCapacityConfigurationResponse, kRepeatable>;
using GetDynamicCapacityExtentList =
    Command<Opcode::kGetDynamicCapacityExtentList, "Get Dynamic Capacity Extent List",
            GetDynamicCapacityExtentListRequest, GetDynamicCapacityExtentListResponse, kRepeatable>;
using AddDynamicCapacityResponse = Command<Opcode::kAddDynamicCapacityResponse,
                                           "Add Dynamic Capacity Response", UpdatedDcExtents, NoPayload>;
using ReleaseDynamicCapacity =
    Command<Opcode::kReleaseDynamicCapacity, "Release Dynamic Capacity", UpdatedDcExtents, NoPayload>;

}  // namespace memtide::fmapi

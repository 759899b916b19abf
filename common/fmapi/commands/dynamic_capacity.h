#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "common/fmapi/command.h"

// Dynamic capacity devices (CXL 3.1, 7.6.7.6): what the FM asks the device as a whole. A device has up to
// eight regions for each host; memory is added to them and released from them in extents.
namespace memtide::fmapi {

inline constexpr std::size_t kMaxDcRegions = 8;
using DcTag = std::array<std::uint8_t, 16>;  // all 0: none

enum class DcSelection : std::uint8_t {
    kFree = 0,          // any free memory of the region
    kContiguous = 1,    // the same, in one piece
    kPrescriptive = 2,  // the extents that the request lists
    kShared = 3,        // memory that another host has under the tag
};
enum class DcRemoval : std::uint8_t {
    kByTag = 0,
    kPrescriptive = 1,  // the extents that the request lists
};

struct GetDcdInfoResponse {
    std::uint8_t hosts = 0;                // that the device supports
    std::uint8_t regions = 0;              // of each of them, at most
    std::uint16_t selection_policies = 0;  // bit n: DcSelection n
    std::uint16_t removal_policies = 0;    // bit n: DcRemoval n
    std::uint8_t sanitize_mask = 0;        // bit n: whether region n sanitizes on release can be configured
    std::uint64_t total_capacity = 0;      // of dynamic capacity, in multiples of 256 MiB
    std::vector<std::uint64_t> block_sizes = std::vector<std::uint64_t>(kMaxDcRegions);  // bit n: 2^n bytes

    [[nodiscard]] std::size_t region_slots() const { return kMaxDcRegions; }
    static constexpr std::string_view kName = "Get DCD Info response";
    static constexpr std::size_t kWireSize = 20;
    static constexpr auto fields =
        std::tuple{field("hosts", &GetDcdInfoResponse::hosts),
                   field("regions", &GetDcdInfoResponse::regions),
                   reserved(2),
                   field("selection_policies", &GetDcdInfoResponse::selection_policies),
                   reserved(2),
                   field("removal_policies", &GetDcdInfoResponse::removal_policies),
                   field("sanitize_mask", &GetDcdInfoResponse::sanitize_mask),
                   reserved(1),
                   field("total_capacity", &GetDcdInfoResponse::total_capacity),
                   list("block_sizes", &GetDcdInfoResponse::block_sizes, &GetDcdInfoResponse::region_slots)};
    friend bool operator==(const GetDcdInfoResponse&, const GetDcdInfoResponse&) = default;
};

// --- Regions ---

// Bit of DcRegionConfiguration::flags.
inline constexpr std::uint8_t kDcRegionShareable = 0x08;

struct GetHostDcRegionConfigurationRequest {
    std::uint16_t host = 0;
    std::uint8_t regions = kMaxDcRegions;  // how many
    std::uint8_t first_region = 0;

    static constexpr std::string_view kName = "Get Host DC Region Configuration request";
    static constexpr std::size_t kWireSize = 4;
    static constexpr auto fields =
        std::tuple{field("host", &GetHostDcRegionConfigurationRequest::host),
                   field("regions", &GetHostDcRegionConfigurationRequest::regions),
                   field("first_region", &GetHostDcRegionConfigurationRequest::first_region)};
    friend bool operator==(const GetHostDcRegionConfigurationRequest&,
                           const GetHostDcRegionConfigurationRequest&) = default;
};

struct DcRegionConfiguration {
    std::uint64_t base = 0;           // DPA; a multiple of 256 MiB
    std::uint64_t decode_length = 0;  // in multiples of 256 MiB
    std::uint64_t length = 0;         // bytes that can be added, a multiple of the block size
    std::uint64_t block_size = 0;     // bytes
    std::uint8_t flags = 0;           // as in the region's DSMAS: non-volatile, shareable, ...
    std::uint8_t sanitize_on_release = 0;

    static constexpr std::string_view kName = "DC region configuration";
    static constexpr std::size_t kWireSize = 40;
    static constexpr auto fields =
        std::tuple{field("base", &DcRegionConfiguration::base),
                   field("decode_length", &DcRegionConfiguration::decode_length),
                   field("length", &DcRegionConfiguration::length),
                   field("block_size", &DcRegionConfiguration::block_size),
                   field("flags", &DcRegionConfiguration::flags),
                   reserved(3),
                   field("sanitize_on_release", &DcRegionConfiguration::sanitize_on_release),
                   reserved(3)};
    friend bool operator==(const DcRegionConfiguration&, const DcRegionConfiguration&) = default;
};

struct GetHostDcRegionConfigurationResponse {
    std::uint16_t host = 0;
    std::uint8_t available_regions = 0;  // of the host
    std::vector<DcRegionConfiguration> regions;
    std::uint32_t supported_extents = 0;
    std::uint32_t available_extents = 0;  // that can be added still
    std::uint32_t supported_tags = 0;
    std::uint32_t available_tags = 0;

    static constexpr std::string_view kName = "Get Host DC Region Configuration response";
    static constexpr std::size_t kWireSize = 20;
    static constexpr auto fields =
        std::tuple{field("host", &GetHostDcRegionConfigurationResponse::host),
                   field("available_regions", &GetHostDcRegionConfigurationResponse::available_regions),
                   count<std::uint8_t>("regions_returned", &GetHostDcRegionConfigurationResponse::regions),
                   list<std::uint8_t>("regions", &GetHostDcRegionConfigurationResponse::regions),
                   field("supported_extents", &GetHostDcRegionConfigurationResponse::supported_extents),
                   field("available_extents", &GetHostDcRegionConfigurationResponse::available_extents),
                   field("supported_tags", &GetHostDcRegionConfigurationResponse::supported_tags),
                   field("available_tags", &GetHostDcRegionConfigurationResponse::available_tags)};
    friend bool operator==(const GetHostDcRegionConfigurationResponse&,
                           const GetHostDcRegionConfigurationResponse&) = default;
};

// Possible while nothing of the region has been added anywhere.
struct SetDcRegionConfigurationRequest {
    std::uint8_t region = 0;
    std::uint64_t block_size = 0;  // bytes
    std::uint8_t sanitize_on_release = 0;

    static constexpr std::string_view kName = "Set DC Region Configuration request";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields = std::tuple{
        field("region", &SetDcRegionConfigurationRequest::region), reserved(3),
        field("block_size", &SetDcRegionConfigurationRequest::block_size),
        field("sanitize_on_release", &SetDcRegionConfigurationRequest::sanitize_on_release), reserved(3)};
    friend bool operator==(const SetDcRegionConfigurationRequest&,
                           const SetDcRegionConfigurationRequest&) = default;
};

// --- Extents ---

// CXL 3.1, 8.2.9.2.1.6.
struct DcExtent {
    std::uint64_t dpa = 0;  // its first byte
    std::uint64_t length = 0;
    DcTag tag{};
    std::uint16_t shared_sequence = 0;  // its place among those of a shared tag; 0: not shared

    static constexpr std::string_view kName = "DC extent";
    static constexpr std::size_t kWireSize = 40;
    static constexpr auto fields = std::tuple{
        field("dpa", &DcExtent::dpa), field("length", &DcExtent::length), field("tag", &DcExtent::tag),
        field("shared_sequence", &DcExtent::shared_sequence), reserved(6)};
    friend bool operator==(const DcExtent&, const DcExtent&) = default;
};

struct GetDcRegionExtentListsRequest {
    std::uint16_t host = 0;
    std::uint32_t extents = std::numeric_limits<std::uint32_t>::max();  // how many at most; 0: only the total
    std::uint32_t first = 0;

    static constexpr std::string_view kName = "Get DC Region Extent Lists request";
    static constexpr std::size_t kWireSize = 12;
    static constexpr auto fields =
        std::tuple{field("host", &GetDcRegionExtentListsRequest::host), reserved(2),
                   field("extents", &GetDcRegionExtentListsRequest::extents),
                   field("first", &GetDcRegionExtentListsRequest::first)};
    friend bool operator==(const GetDcRegionExtentListsRequest&,
                           const GetDcRegionExtentListsRequest&) = default;
};

struct GetDcRegionExtentListsResponse {
    std::uint16_t host = 0;
    std::uint32_t first = 0;
    std::vector<DcExtent> extents;
    std::uint32_t total = 0;       // of the host
    std::uint32_t generation = 0;  // another one: the list has changed, and is to be read from its beginning

    static constexpr std::string_view kName = "Get DC Region Extent Lists response";
    static constexpr std::size_t kWireSize = 24;
    static constexpr auto fields =
        std::tuple{field("host", &GetDcRegionExtentListsResponse::host),
                   reserved(2),
                   field("first", &GetDcRegionExtentListsResponse::first),
                   count<std::uint32_t>("extents_returned", &GetDcRegionExtentListsResponse::extents),
                   field("total", &GetDcRegionExtentListsResponse::total),
                   field("generation", &GetDcRegionExtentListsResponse::generation),
                   reserved(4),
                   list<std::uint32_t>("extents", &GetDcRegionExtentListsResponse::extents)};
    friend bool operator==(const GetDcRegionExtentListsResponse&,
                           const GetDcRegionExtentListsResponse&) = default;
};

struct InitiateDynamicCapacityAddRequest {
    std::uint16_t host = 0;
    DcSelection selection = DcSelection::kFree;
    std::uint8_t region = 0;
    std::uint64_t length = 0;  // bytes
    DcTag tag{};
    std::vector<DcExtent> extents{};  // with kPrescriptive

    static constexpr std::string_view kName = "Initiate Dynamic Capacity Add request";
    static constexpr std::size_t kWireSize = 32;
    static constexpr auto fields =
        std::tuple{field("host", &InitiateDynamicCapacityAddRequest::host),
                   field("selection", &InitiateDynamicCapacityAddRequest::selection),
                   field("region", &InitiateDynamicCapacityAddRequest::region),
                   field("length", &InitiateDynamicCapacityAddRequest::length),
                   field("tag", &InitiateDynamicCapacityAddRequest::tag),
                   count<std::uint32_t>("extent_count", &InitiateDynamicCapacityAddRequest::extents),
                   list<std::uint32_t>("extents", &InitiateDynamicCapacityAddRequest::extents)};
    friend bool operator==(const InitiateDynamicCapacityAddRequest&,
                           const InitiateDynamicCapacityAddRequest&) = default;
};

// Bits of InitiateDynamicCapacityReleaseRequest::flags; the low four are the DcRemoval.
inline constexpr std::uint8_t kDcRemovalMask = 0x0f;
inline constexpr std::uint8_t kDcForcedRemoval = 0x10;  // whether or not the host lets go
inline constexpr std::uint8_t kDcSanitizeOnRelease = 0x20;

struct InitiateDynamicCapacityReleaseRequest {
    std::uint16_t host = 0;
    std::uint8_t flags = 0;
    std::uint64_t length = 0;  // bytes
    DcTag tag{};
    std::vector<DcExtent> extents{};  // with kPrescriptive

    [[nodiscard]] constexpr DcRemoval removal() const {
        return static_cast<DcRemoval>(flags & kDcRemovalMask);
    }
    static constexpr std::string_view kName = "Initiate Dynamic Capacity Release request";
    static constexpr std::size_t kWireSize = 32;
    static constexpr auto fields =
        std::tuple{field("host", &InitiateDynamicCapacityReleaseRequest::host),
                   field("flags", &InitiateDynamicCapacityReleaseRequest::flags),
                   reserved(1),
                   field("length", &InitiateDynamicCapacityReleaseRequest::length),
                   field("tag", &InitiateDynamicCapacityReleaseRequest::tag),
                   count<std::uint32_t>("extent_count", &InitiateDynamicCapacityReleaseRequest::extents),
                   list<std::uint32_t>("extents", &InitiateDynamicCapacityReleaseRequest::extents)};
    friend bool operator==(const InitiateDynamicCapacityReleaseRequest&,
                           const InitiateDynamicCapacityReleaseRequest&) = default;
};

// --- Tags ---

// Of Dynamic Capacity Add Reference, which keeps the memory of a tag from being freed, and Remove Reference.
struct DcReferenceRequest {
    DcTag tag{};

    static constexpr std::string_view kName = "Dynamic Capacity reference request";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields = std::tuple{field("tag", &DcReferenceRequest::tag)};
    friend bool operator==(const DcReferenceRequest&, const DcReferenceRequest&) = default;
};

struct DynamicCapacityListTagsRequest {
    std::uint32_t first = 0;
    std::uint32_t limit = std::numeric_limits<std::uint32_t>::max();  // 0: only how many there are

    static constexpr std::string_view kName = "Dynamic Capacity List Tags request";
    static constexpr std::size_t kWireSize = 8;
    static constexpr auto fields = std::tuple{field("first", &DynamicCapacityListTagsRequest::first),
                                              field("limit", &DynamicCapacityListTagsRequest::limit)};
    friend bool operator==(const DynamicCapacityListTagsRequest&,
                           const DynamicCapacityListTagsRequest&) = default;
};

struct DcTagInformation {
    DcTag tag{};
    std::uint8_t flags = 0;                     // bit 0: the FM holds a reference
    std::array<std::uint8_t, 32> references{};  // bit n: host n has accepted it
    std::array<std::uint8_t, 32> pending{};     // bit n: host n has yet to accept it

    static constexpr std::string_view kName = "DC tag information";
    static constexpr std::size_t kWireSize = 84;
    static constexpr auto fields = std::tuple{
        field("tag", &DcTagInformation::tag), field("flags", &DcTagInformation::flags), reserved(3),
        field("references", &DcTagInformation::references), field("pending", &DcTagInformation::pending)};
    friend bool operator==(const DcTagInformation&, const DcTagInformation&) = default;
};

struct DynamicCapacityListTagsResponse {
    std::uint32_t generation = 0;
    std::uint32_t total = 0;
    std::vector<DcTagInformation> tags;
    std::uint8_t validity = 0;  // bit 0: references are valid, bit 1: so are pending ones

    static constexpr std::string_view kName = "Dynamic Capacity List Tags response";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields =
        std::tuple{field("generation", &DynamicCapacityListTagsResponse::generation),
                   field("total", &DynamicCapacityListTagsResponse::total),
                   count<std::uint32_t>("tags_returned", &DynamicCapacityListTagsResponse::tags),
                   field("validity", &DynamicCapacityListTagsResponse::validity),
                   reserved(3),
                   list<std::uint32_t>("tags", &DynamicCapacityListTagsResponse::tags)};
    friend bool operator==(const DynamicCapacityListTagsResponse&,
                           const DynamicCapacityListTagsResponse&) = default;
};

using GetDcdInfo = Command<Opcode::kGetDcdInfo, "Get DCD Info", NoPayload, GetDcdInfoResponse, kRepeatable>;
using GetHostDcRegionConfiguration =
    Command<Opcode::kGetHostDcRegionConfiguration, "Get Host DC Region Configuration",
            GetHostDcRegionConfigurationRequest, GetHostDcRegionConfigurationResponse, kRepeatable>;
using SetDcRegionConfiguration = Command<Opcode::kSetDcRegionConfiguration, "Set DC Region Configuration",
                                         SetDcRegionConfigurationRequest, NoPayload, kRepeatable>;
using GetDcRegionExtentLists =
    Command<Opcode::kGetDcRegionExtentLists, "Get DC Region Extent Lists", GetDcRegionExtentListsRequest,
            GetDcRegionExtentListsResponse, kRepeatable>;
using InitiateDynamicCapacityAdd =
    Command<Opcode::kInitiateDynamicCapacityAdd, "Initiate Dynamic Capacity Add",
            InitiateDynamicCapacityAddRequest, NoPayload>;
using InitiateDynamicCapacityRelease =
    Command<Opcode::kInitiateDynamicCapacityRelease, "Initiate Dynamic Capacity Release",
            InitiateDynamicCapacityReleaseRequest, NoPayload>;
using DynamicCapacityAddReference = Command<Opcode::kDynamicCapacityAddReference,
                                            "Dynamic Capacity Add Reference", DcReferenceRequest, NoPayload>;
using DynamicCapacityRemoveReference =
    Command<Opcode::kDynamicCapacityRemoveReference, "Dynamic Capacity Remove Reference", DcReferenceRequest,
            NoPayload>;
using DynamicCapacityListTags =
    Command<Opcode::kDynamicCapacityListTags, "Dynamic Capacity List Tags", DynamicCapacityListTagsRequest,
            DynamicCapacityListTagsResponse, kRepeatable>;

}  // namespace memtide::fmapi

#pragma once

#include <tuple>

#include "common/fmapi/commands.h"

// One filled value of every payload, for tests that go over all commands.
namespace memtide::fmapi::test {

inline Payload some_bytes(std::size_t n) {
    Payload out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(static_cast<std::byte>(i + 1));
    return out;
}

inline GetVirtualSwitchInfoResponse two_vcss() {
    GetVirtualSwitchInfoResponse response;
    response.vcss = {{.vcs = 0,
                      .state = VcsState::kEnabled,
                      .upstream_port = 0,
                      .total_vppbs = 2,
                      .vppbs = {{VppbBinding::kBoundLd, 2, 1}, {VppbBinding::kUnbound, 0xff, 0xff}}},
                     {.vcs = 1,
                      .state = VcsState::kEnabled,
                      .upstream_port = 1,
                      .total_vppbs = 1,
                      .vppbs = {{VppbBinding::kBoundPort, 3, 0xff}}}};
    return response;
}

inline std::vector<EventRecord> two_records() {
    EventRecord record;
    record.format = kPhysicalSwitchRecord;
    record.flags = 0x000001;
    record.handle = 7;
    record.timestamp = 0x1234567890abcdef;
    record.data = {2, 0};
    EventRecord other = record;
    other.format = kMldPortRecord;
    other.handle = 8;
    return {record, other};
}

inline IdBitmap ids(std::initializer_list<std::uint8_t> set) {
    IdBitmap bitmap;
    for (const auto id : set) bitmap.set(id);
    return bitmap;
}

inline constexpr DcTag kSomeTag{16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
inline DcExtent dc_extent(std::uint64_t dpa) {
    return {.dpa = dpa, .length = 0x1000, .tag = kSomeTag, .shared_sequence = 0x0102};
}
inline DcRegionConfiguration dc_region(std::uint64_t base) { return {base, 1, 0x200000, 0x1000, 0x80, 1}; }

// A tuple, so that a test can visit them; a payload that several commands share is there once.
inline auto all_samples() {
    return std::tuple{
        NoPayload{},
        IdentifyResponse{0x1111, 0x2222, 0x3333, 0x4444, 0x4d54000100000001, 12, ComponentType::kType3},
        BackgroundOperationStatusResponse{BackgroundOperationStatusResponse::make_status(true, 50),
                                          Opcode::kBindVppb, ReturnCode::kBusy, 0x1234},
        ResponseMessageLimit{10},
        SetResponseMessageLimitResponse{11},
        GetEventRecordsRequest{EventLog::kFailure},
        GetEventRecordsResponse{.flags = kEventsOverflow | kMoreEvents,
                                .overflow_count = 3,
                                .first_overflow = 0x1122334455667788,
                                .last_overflow = 0x2233445566778899,
                                .records = {two_records()[0], two_records()[1]}},
        ClearEventRecordsRequest{EventLog::kWarning, kClearAllEvents, {0x0102, 0x0304}},
        MctpEventInterruptPolicy{0x800f},
        SetMctpEventInterruptPolicyResponse{0x800f},
        EventNotificationRequest{0x0002},
        PhysicalSwitchRecord{.port = 2,
                             .event = PhysicalSwitchEvent::kSlotStatusUpdated,
                             .slot_status = kSlotPresenceDetectChanged,
                             .config_state = 3,
                             .max_link_width = 16,
                             .link_flags = kLinkPresent},
        VirtualSwitchRecord{1, 2, VirtualSwitchEvent::kLinkControlUpdated, 3, 4, 5, 0x0607, 0x0809},
        MldPortRecord{MldPortEvent::kFatal, 2, {1, 2, 3, 4, 5, 6, 7, 8}},
        IdentifySwitchDeviceResponse{1, 3, 2, ids({0, 1, 2}), ids({0, 1}), 8, 1, 4},
        GetPhysicalPortStateRequest{{0, 1, 2}},
        GetPhysicalPortStateResponse{{PhysicalPort{.port = 0, .config_state = PortConfigState::kUpstream},
                                      PhysicalPort{.port = 2,
                                                   .config_state = PortConfigState::kDownstream,
                                                   .device_mode = ConnectedDeviceMode::kCxl20,
                                                   .device_type = ConnectedDeviceType::kType3Mld,
                                                   .link_flags = kLinkPresent,
                                                   .supported_lds = 4}}},
        IdentifyMemoryDeviceResponse{.firmware_revision = {'1', '.', '0'},
                                     .total_capacity = 4,
                                     .volatile_only_capacity = 4,
                                     .poison_list_max = 0x10203,
                                     .dynamic_capacity_events = 1},
        GetHealthInfoResponse{.health_status = kMaintenanceNeeded,
                              .media_status = MediaStatus::kNotReady,
                              .additional_status = 0x16,
                              .life_used = 97,
                              .temperature = -5,
                              .dirty_shutdowns = 1,
                              .corrected_volatile_errors = 0x01020304,
                              .corrected_persistent_errors = 2},
        PhysicalPortControlRequest{7, PortOperation::kResetPpb},
        PpbConfigRequest{2, PpbConfigRequest::make_access(0x104, true), 0xdeadbeef},
        PpbConfigResponse{0x01020304},
        GetVirtualSwitchInfoRequest{0, 255, {0, 1}},
        two_vcss(),
        BindVppbRequest{1, 2, 3, 4},
        UnbindVppbRequest{1, 2, UnbindOption::kSurpriseHotRemove},
        GenerateAerEventRequest{1, 2, 0x80000001, {9, 8, 7}},
        TunnelRequest{2, TunnelTarget::kPort, MctpType::kCci, some_bytes(14)},
        TunnelResponse{MctpType::kCci, some_bytes(13)},
        GetLdInfoResponse{0x40000000, 4, 1},
        GetLdAllocationsRequest{1, 3},
        GetLdAllocationsResponse{4, LdGranularity::k512MiB, 1, {{1, 0}, {2, 3}}},
        SetLdAllocationsPayload{2, {{1, 0}, {0, 0}}},
        GetMultiHeadedInfoRequest{1, 16},
        GetMultiHeadedInfoResponse{4, 2, 1, {0, 1, kNoHead}},
        GetHeadInfoRequest{0, 2},
        GetHeadInfoResponse{{HeadInfo{0, 16, 8, 0x1f, 5, 4, 4, 3, 1}, HeadInfo{.port_number = 7}}},
        EventInterruptPolicy{0x11, 0x21, 0x02, 0x31, 0x41},
        DomainValidationStateResponse{DomainValidationState::kSet},
        DomainValidationSecret{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
        DomainValidationVcsRequest{3},
        LdConfigRequest{2, PpbConfigRequest::make_access(0x10, true), 5, 0xcafe},
        LdConfigResponse{0x01020304},
        LdMemoryRequest{2, LdMemoryRequest::kWrite | 0xff000, 5, 3, 0x1000, {7, 8, 9}},
        LdMemoryResponse{{1, 2, 3, 4}},
        QosControl{3, 10, 25, 8, 0x0102, 64},
        GetQosStatusResponse{42},
        QosFractionsRequest{4, 1},
        QosFractions{1, {128, 64, 32}},
        GetDcdInfoResponse{.hosts = 4,
                           .regions = 2,
                           .selection_policies = 0xf,
                           .removal_policies = 3,
                           .sanitize_mask = 1,
                           .total_capacity = 8,
                           .block_sizes = {1, 2, 3, 4, 5, 6, 7, 8}},
        GetHostDcRegionConfigurationRequest{1, 8, 0},
        GetHostDcRegionConfigurationResponse{.host = 1,
                                             .available_regions = 2,
                                             .regions = {dc_region(0), dc_region(0x10000000)},
                                             .supported_extents = 512,
                                             .available_extents = 500,
                                             .supported_tags = 64,
                                             .available_tags = 63},
        SetDcRegionConfigurationRequest{1, 0x200000, 1},
        GetDcRegionExtentListsRequest{1, 100, 2},
        GetDcRegionExtentListsResponse{1, 2, {dc_extent(0x1000), dc_extent(0x2000)}, 4, 9},
        InitiateDynamicCapacityAddRequest{1, DcSelection::kPrescriptive, 2, 0x3000, kSomeTag, {dc_extent(0)}},
        InitiateDynamicCapacityReleaseRequest{
            1,
            static_cast<std::uint8_t>(DcRemoval::kPrescriptive) | kDcForcedRemoval,
            0x1000,
            kSomeTag,
            {dc_extent(0)}},
        DcReferenceRequest{kSomeTag},
        DynamicCapacityListTagsRequest{1, 2},
        DynamicCapacityListTagsResponse{7, 3, {DcTagInformation{kSomeTag, 1, {2}, {4}}}, 3},
        GetDynamicCapacityConfigurationRequest{2, 1},
        GetDynamicCapacityConfigurationResponse{
            .available_regions = 2,
            .regions = {HostDcRegion{0x10000000, 1, 0x200000, 0x1000, 7, 1}},
            .supported_extents = 512,
            .available_extents = 500,
            .supported_tags = 64,
            .available_tags = 63},
        GetDynamicCapacityExtentListRequest{100, 2},
        GetDynamicCapacityExtentListResponse{{dc_extent(0x1000)}, 3, 9},
        UpdatedDcExtents{{{0x1000, 0x2000}, {0x4000, 0x1000}}, kDcMoreExtents},
        IdentifyPbrSwitchResponse{5, 1, 2, kRandomRouting},
        GetPidBindingRequest{1, 2},
        GetPidBindingResponse{0x123, RouteCost{1000, 150, 64, 400}},
        ConfigurePidBindingRequest{PidBindingOperation::kUnbind, 1, 2, 0x123, RouteCost{1000, 150, 64, 400}},
    };
}

}  // namespace memtide::fmapi::test

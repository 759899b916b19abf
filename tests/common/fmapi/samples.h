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
    };
}

}  // namespace memtide::fmapi::test

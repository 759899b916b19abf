#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace memtide::fmapi {

// Command opcodes. Any 16-bit value may arrive from a peer, so a switch over this needs a default.
enum class Opcode : std::uint16_t {
    // Information and status, events: every component (CXL 3.1, 8.2.9.1, 8.2.9.2)
    kIdentify = 0x0001,
    kBackgroundOperationStatus = 0x0002,
    kGetResponseMessageLimit = 0x0003,
    kSetResponseMessageLimit = 0x0004,
    kRequestAbortBackgroundOperation = 0x0005,
    kGetEventRecords = 0x0100,
    kClearEventRecords = 0x0101,
    kGetEventInterruptPolicy = 0x0102,
    kSetEventInterruptPolicy = 0x0103,
    kGetMctpEventInterruptPolicy = 0x0104,
    kSetMctpEventInterruptPolicy = 0x0105,
    kEventNotification = 0x0106,
    // Memory devices (CXL 3.1, 8.2.9.9)
    kIdentifyMemoryDevice = 0x4000,
    kGetHealthInfo = 0x4200,
    kSanitize = 0x4400,
    kSecureErase = 0x4401,
    // Dynamic capacity as the host sees it (CXL 3.1, 8.2.9.9.9)
    kGetDynamicCapacityConfiguration = 0x4800,
    kGetDynamicCapacityExtentList = 0x4801,
    kAddDynamicCapacityResponse = 0x4802,
    kReleaseDynamicCapacity = 0x4803,
    // Physical switch (CXL 3.1, 7.6.7.1)
    kIdentifySwitchDevice = 0x5100,
    kGetPhysicalPortState = 0x5101,
    kPhysicalPortControl = 0x5102,
    kSendPpbConfigRequest = 0x5103,
    kGetDomainValidationSvState = 0x5104,
    kSetDomainValidationSv = 0x5105,
    kGetVcsDomainValidationSvState = 0x5106,
    kGetDomainValidationSv = 0x5107,
    // Virtual switch (CXL 3.1, 7.6.7.2)
    kGetVirtualSwitchInfo = 0x5200,
    kBindVppb = 0x5201,
    kUnbindVppb = 0x5202,
    kGenerateAerEvent = 0x5203,
    // MLD port (CXL 3.1, 7.6.7.3)
    kTunnelManagementCommand = 0x5300,
    kSendLdConfigRequest = 0x5301,
    kSendLdMemoryRequest = 0x5302,
    // MLD component (CXL 3.1, 7.6.7.4)
    kGetLdInfo = 0x5400,
    kGetLdAllocations = 0x5401,
    kSetLdAllocations = 0x5402,
    kGetQosControl = 0x5403,
    kSetQosControl = 0x5404,
    kGetQosStatus = 0x5405,
    kGetQosAllocatedBandwidth = 0x5406,
    kSetQosAllocatedBandwidth = 0x5407,
    kGetQosBandwidthLimit = 0x5408,
    kSetQosBandwidthLimit = 0x5409,
    // Multi-headed devices (CXL 3.1, 7.6.7.5)
    kGetMultiHeadedInfo = 0x5500,
    kGetHeadInfo = 0x5501,
    // Dynamic capacity devices (CXL 3.1, 7.6.7.6)
    kGetDcdInfo = 0x5600,
    kGetHostDcRegionConfiguration = 0x5601,
    kSetDcRegionConfiguration = 0x5602,
    kGetDcRegionExtentLists = 0x5603,
    kInitiateDynamicCapacityAdd = 0x5604,
    kInitiateDynamicCapacityRelease = 0x5605,
    kDynamicCapacityAddReference = 0x5606,
    kDynamicCapacityRemoveReference = 0x5607,
    kDynamicCapacityListTags = 0x5608,
    // Port-based routing switches (CXL 3.1, 7.7.13)
    kIdentifyPbrSwitch = 0x5700,
    kGetPidBinding = 0x5705,
    kConfigurePidBinding = 0x5706,
};

// One row for each command that there is a description of (commands.h).
struct OpcodeInfo {
    Opcode opcode;
    std::string_view name;  // as the specification spells it
    bool repeatable;        // see Traits
    bool background;
};

// Ascending by opcode.
std::span<const OpcodeInfo> opcodes();
// Null for an opcode that there is no description of.
const OpcodeInfo* find(Opcode opcode);

// "Bind vPPB (5201h)"; "unknown command (9999h)" when there is no such command.
std::string to_string(Opcode opcode);
// "Bind vPPB"; "unknown command".
std::string_view name_of(Opcode opcode);

}  // namespace memtide::fmapi

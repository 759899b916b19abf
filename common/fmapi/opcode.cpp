#include "common/fmapi/opcode.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::fmapi {

using enum Opcode;

constexpr std::array<OpcodeInfo, 52> kOpcodes{{
    {kIdentify, "Identify"},
    {kBackgroundOperationStatus, "Background Operation Status"},
    {kGetResponseMessageLimit, "Get Response Message Limit"},
    {kSetResponseMessageLimit, "Set Response Message Limit"},
    {kRequestAbortBackgroundOperation, "Request Abort Background Operation"},
    {kGetEventRecords, "Get Event Records"},
    {kClearEventRecords, "Clear Event Records"},
    {kGetEventInterruptPolicy, "Get Event Interrupt Policy"},
    {kSetEventInterruptPolicy, "Set Event Interrupt Policy"},
    {kGetMctpEventInterruptPolicy, "Get MCTP Event Interrupt Policy"},
    {kSetMctpEventInterruptPolicy, "Set MCTP Event Interrupt Policy"},
    {kEventNotification, "Event Notification"},
    {kIdentifyMemoryDevice, "Identify Memory Device"},
    {kGetHealthInfo, "Get Health Info"},
    {kSanitize, "Sanitize"},
    {kSecureErase, "Secure Erase"},
    {kIdentifySwitchDevice, "Identify Switch Device"},
    {kGetPhysicalPortState, "Get Physical Port State"},
    {kPhysicalPortControl, "Physical Port Control"},
    {kSendPpbConfigRequest, "Send PPB CXL.io Configuration Request"},
    {kGetDomainValidationSvState, "Get Domain Validation SV State"},
    {kSetDomainValidationSv, "Set Domain Validation SV"},
    {kGetVcsDomainValidationSvState, "Get VCS Domain Validation SV State"},
    {kGetDomainValidationSv, "Get Domain Validation SV"},
    {kGetVirtualSwitchInfo, "Get Virtual CXL Switch Info"},
    {kBindVppb, "Bind vPPB"},
    {kUnbindVppb, "Unbind vPPB"},
    {kGenerateAerEvent, "Generate AER Event"},
    {kTunnelManagementCommand, "Tunnel Management Command"},
    {kSendLdConfigRequest, "Send LD CXL.io Configuration Request"},
    {kSendLdMemoryRequest, "Send LD CXL.io Memory Request"},
    {kGetLdInfo, "Get LD Info"},
    {kGetLdAllocations, "Get LD Allocations"},
    {kSetLdAllocations, "Set LD Allocations"},
    {kGetQosControl, "Get QoS Control"},
    {kSetQosControl, "Set QoS Control"},
    {kGetQosStatus, "Get QoS Status"},
    {kGetQosAllocatedBandwidth, "Get QoS Allocated Bandwidth"},
    {kSetQosAllocatedBandwidth, "Set QoS Allocated Bandwidth"},
    {kGetQosBandwidthLimit, "Get QoS Bandwidth Limit"},
    {kSetQosBandwidthLimit, "Set QoS Bandwidth Limit"},
    {kGetMultiHeadedInfo, "Get Multi-Headed Info"},
    {kGetHeadInfo, "Get Head Info"},
    {kGetDcdInfo, "Get DCD Info"},
    {kGetHostDcRegionConfiguration, "Get Host DC Region Configuration"},
    {kSetDcRegionConfiguration, "Set DC Region Configuration"},
    {kGetDcRegionExtentLists, "Get DC Region Extent Lists"},
    {kInitiateDynamicCapacityAdd, "Initiate Dynamic Capacity Add"},
    {kInitiateDynamicCapacityRelease, "Initiate Dynamic Capacity Release"},
    {kDynamicCapacityAddReference, "Dynamic Capacity Add Reference"},
    {kDynamicCapacityRemoveReference, "Dynamic Capacity Remove Reference"},
    {kDynamicCapacityListTags, "Dynamic Capacity List Tags"},
}};
static_assert(std::ranges::is_sorted(kOpcodes, {}, &OpcodeInfo::opcode));

std::string_view name_of(Opcode opcode) {
    const auto row = std::ranges::lower_bound(kOpcodes, opcode, {}, &OpcodeInfo::opcode);
    return row != kOpcodes.end() && row->opcode == opcode ? row->name : "unknown command";
}

std::string to_string(Opcode opcode) {
    return fmt::format("{} ({:04x}h)", name_of(opcode), static_cast<unsigned>(opcode));
}

}  // namespace memtide::fmapi

#pragma once

#include <tuple>

#include "common/fmapi/commands/component.h"
#include "common/fmapi/commands/domain_validation.h"
#include "common/fmapi/commands/dynamic_capacity.h"
#include "common/fmapi/commands/events.h"
#include "common/fmapi/commands/host_dynamic_capacity.h"
#include "common/fmapi/commands/memory_device.h"
#include "common/fmapi/commands/mld.h"
#include "common/fmapi/commands/multi_headed.h"
#include "common/fmapi/commands/pbr_switch.h"
#include "common/fmapi/commands/physical_switch.h"
#include "common/fmapi/commands/qos.h"
#include "common/fmapi/commands/virtual_switch.h"

namespace memtide::fmapi {

// Every command that has a codec, ascending by opcode. Tests, fuzzers, names and docs/fm-api.md follow from
// this list.
using Commands = std::tuple<
    // 00: every component
    Identify, BackgroundOperationStatus, GetResponseMessageLimit, SetResponseMessageLimit,
    RequestAbortBackgroundOperation,
    // 01: events
    GetEventRecords, ClearEventRecords, GetEventInterruptPolicy, SetEventInterruptPolicy,
    GetMctpEventInterruptPolicy, SetMctpEventInterruptPolicy, EventNotification,
    // 40, 42, 44: memory devices
    IdentifyMemoryDevice, GetHealthInfo, Sanitize, SecureErase,
    // 48: dynamic capacity, the host's side
    GetDynamicCapacityConfiguration, GetDynamicCapacityExtentList, AddDynamicCapacityResponse,
    ReleaseDynamicCapacity,
    // 51: physical switch
    IdentifySwitchDevice, GetPhysicalPortState, PhysicalPortControl, SendPpbConfigRequest,
    GetDomainValidationSvState, SetDomainValidationSv, GetVcsDomainValidationSvState, GetDomainValidationSv,
    // 52: virtual switch
    GetVirtualSwitchInfo, BindVppb, UnbindVppb, GenerateAerEvent,
    // 53: MLD port
    TunnelManagementCommand, SendLdConfigRequest, SendLdMemoryRequest,
    // 54: MLD component
    GetLdInfo, GetLdAllocations, SetLdAllocations, GetQosControl, SetQosControl, GetQosStatus,
    GetQosAllocatedBandwidth, SetQosAllocatedBandwidth, GetQosBandwidthLimit, SetQosBandwidthLimit,
    // 55: multi-headed devices
    GetMultiHeadedInfo, GetHeadInfo,
    // 56: dynamic capacity, the fabric manager's side
    GetDcdInfo, GetHostDcRegionConfiguration, SetDcRegionConfiguration, GetDcRegionExtentLists,
    InitiateDynamicCapacityAdd, InitiateDynamicCapacityRelease, DynamicCapacityAddReference,
    DynamicCapacityRemoveReference, DynamicCapacityListTags,
    // 57: port-based routing
    IdentifyPbrSwitch, GetPidBinding, ConfigurePidBinding>;

// Calls visit(Command{}) for each of them: for_each_command([](auto command) { decltype(command)::kOpcode ...
// }).
template <typename Visitor>
constexpr void for_each_command(Visitor&& visit) {
    std::apply([&](auto... command) { (visit(command), ...); }, Commands{});
}

}  // namespace memtide::fmapi

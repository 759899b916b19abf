#pragma once

#include <tuple>

#include "common/fmapi/commands/component.h"
#include "common/fmapi/commands/events.h"
#include "common/fmapi/commands/memory_device.h"
#include "common/fmapi/commands/mld.h"
#include "common/fmapi/commands/multi_headed.h"
#include "common/fmapi/commands/physical_switch.h"
#include "common/fmapi/commands/virtual_switch.h"

namespace memtide::fmapi {

// Every command that has a codec, by opcode. Tests, the fuzzer and docs/fm-api.md are held to this list.
using Commands =
    std::tuple<Identify, BackgroundOperationStatus, GetResponseMessageLimit, SetResponseMessageLimit,
               RequestAbortBackgroundOperation, GetEventRecords, ClearEventRecords,
               GetMctpEventInterruptPolicy, SetMctpEventInterruptPolicy, EventNotification,
               IdentifyMemoryDevice, GetHealthInfo, Sanitize, IdentifySwitchDevice, GetPhysicalPortState,
               PhysicalPortControl, SendPpbConfigRequest, GetVirtualSwitchInfo, BindVppb, UnbindVppb,
               GenerateAerEvent, TunnelManagementCommand, GetLdInfo, GetLdAllocations, SetLdAllocations,
               GetMultiHeadedInfo, GetHeadInfo>;

// Calls visit(Command{}) for each of them: for_each_command([](auto command) { decltype(command)::kOpcode ...
// }).
template <typename Visitor>
constexpr void for_each_command(Visitor&& visit) {
    std::apply([&](auto... command) { (visit(command), ...); }, Commands{});
}

}  // namespace memtide::fmapi

#pragma once

#include <optional>

#include "common/fmapi/mctp.h"
#include "common/fmapi/message.h"
#include "cxl-emul/switch/model.h"

// The commands of the switch and, through its tunnel, of the devices behind it. Pure: they look at the model,
// change it and answer; what takes time is handed back as an Operation.
//
// Return codes they have in common (CXL 3.1, table 8-37): Unsupported for an opcode that the component does
// not have, Invalid Payload Length for a payload longer or shorter than the command's, Invalid Input for ids
// that do not exist and for what can never work, Busy while the component's background operation runs.
namespace memtide::emul {

struct Answer {
    fmapi::Message response;
    std::optional<Operation> started;  // to be carried out, then ended with finish()
};

// A request that arrived at the switch. Never fails: mistakes are in the response's return code. A request to
// abort only sets Component::Background::abort_requested of the component.
Answer handle(SwitchModel& model, fmapi::MctpType type, const fmapi::Message& request);

// A request of a host to the LD that its vPPB holds, as through the mailbox of the LD. The vPPB must not be
// unbound.
Answer handle_of_host(SwitchModel& model, VppbId vppb, const fmapi::Message& request);

}  // namespace memtide::emul

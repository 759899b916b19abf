#pragma once

#include <cstddef>

#include "common/fmapi/commands/events.h"
#include "common/fmapi/commands/physical_switch.h"
#include "cxl-emul/switch/model.h"

// What a switch records in its event logs.
namespace memtide::emul {

// The port as Get Physical Port State shows it.
fmapi::PhysicalPort port_state(const SwitchModel& model, std::uint8_t id);

// Something happened at the port with this index; the record says how it is now.
void record_port(SwitchModel& model, std::size_t index, fmapi::PhysicalSwitchEvent event,
                 fmapi::EventLog log);

// The MLD behind the port with this index sent an error message for one of its LDs.
void record_ld_error(SwitchModel& model, std::size_t index, fmapi::MldPortEvent event);

}  // namespace memtide::emul

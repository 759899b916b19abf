#include "cxl-emul/switch/command_table.h"
#include "cxl-emul/switch/component_events.h"
#include "cxl-emul/switch/events.h"

// Events command set (CXL 3.1, 8.2.9.2), and what a switch records.
namespace memtide::emul {
namespace {

Outcome get_policy(const SwitchContext& context, const fmapi::NoPayload&) {
    return done(fmapi::MctpEventInterruptPolicy{context.model.events.notified()});
}

// Of what can be asked for it takes what it has: its four logs.
Outcome set_policy(const SwitchContext& context, const fmapi::MctpEventInterruptPolicy& request) {
    std::uint16_t known = 0;
    for (const fmapi::EventLog log : fmapi::kEventLogs)
        known = static_cast<std::uint16_t>(known | fmapi::bit_of(log));
    context.model.events.set_notified(request.settings & known);
    return done(fmapi::SetMctpEventInterruptPolicyResponse{context.model.events.notified()});
}

Outcome get_interrupts(const SwitchContext& context, const fmapi::NoPayload&) {
    return done(context.model.interrupts);
}

// What the log interrupts with, as it is read back: the switch has an MSI message for each log. Nothing when
// the mode is one that does not exist.
std::optional<std::uint8_t> interrupt_setting(std::uint8_t asked, fmapi::EventLog log) {
    constexpr std::uint8_t kMsi = 1;
    const auto mode = static_cast<std::uint8_t>(asked & fmapi::kInterruptModeMask);
    if (mode == fmapi::kInterruptModeMask) return std::nullopt;
    const unsigned message = mode == kMsi ? static_cast<unsigned>(log) : 0;
    return static_cast<std::uint8_t>(mode | message << fmapi::kInterruptMessageNumberShift);
}

// A switch has no dynamic capacity log: whatever is asked for that one is accepted and not kept.
Outcome set_interrupts(const SwitchContext& context, const fmapi::EventInterruptPolicy& request) {
    const auto informational = interrupt_setting(request.informational, fmapi::EventLog::kInformational);
    const auto warning = interrupt_setting(request.warning, fmapi::EventLog::kWarning);
    const auto failure = interrupt_setting(request.failure, fmapi::EventLog::kFailure);
    const auto fatal = interrupt_setting(request.fatal, fmapi::EventLog::kFatal);
    if (!informational || !warning || !failure || !fatal) return refuse(fmapi::ReturnCode::kInvalidInput);
    context.model.interrupts = {*informational, *warning, *failure, *fatal, 0};
    return done();
}

constexpr Row<SwitchContext> kEventRows[] = {
    row<fmapi::GetEventRecords, SwitchContext, get_event_records<SwitchContext>>(),
    row<fmapi::ClearEventRecords, SwitchContext, clear_event_records<SwitchContext>>(),
    row<fmapi::GetEventInterruptPolicy, SwitchContext, get_interrupts>(),
    row<fmapi::SetEventInterruptPolicy, SwitchContext, set_interrupts>(),
    row<fmapi::GetMctpEventInterruptPolicy, SwitchContext, get_policy>(),
    row<fmapi::SetMctpEventInterruptPolicy, SwitchContext, set_policy>(),
};

}  // namespace

std::span<const Row<SwitchContext>> event_commands() { return kEventRows; }

void record_port(SwitchModel& model, std::size_t index, fmapi::PhysicalSwitchEvent event,
                 fmapi::EventLog log) {
    const fmapi::PhysicalPort now = port_state(model, model.ports[index].config.id);
    fmapi::PhysicalSwitchRecord data;
    data.port = now.port;
    data.event = event;
    const bool present = (now.link_flags & fmapi::kLinkPresent) != 0;
    data.slot_status = static_cast<std::uint16_t>(
        (present ? fmapi::kSlotPresent : 0) |
        (event == fmapi::PhysicalSwitchEvent::kSlotStatusUpdated ? fmapi::kSlotPresenceDetectChanged : 0));
    data.config_state = static_cast<std::uint8_t>(now.config_state);
    data.device_mode = static_cast<std::uint8_t>(now.device_mode);
    data.device_type = static_cast<std::uint8_t>(now.device_type);
    data.supported_cxl_modes = now.supported_cxl_modes;
    data.max_link_width = now.max_link_width;
    data.negotiated_link_width = now.negotiated_link_width;
    data.supported_link_speeds = now.supported_link_speeds;
    data.max_link_speed = now.max_link_speed;
    data.current_link_speed = now.current_link_speed;
    data.ltssm_state = now.ltssm_state;
    data.first_lane = now.first_lane;
    data.link_flags = now.link_flags;
    append_record(model.events, log, fmapi::kPhysicalSwitchRecord, data);
}

void record_ld_error(SwitchModel& model, std::size_t index, fmapi::MldPortEvent event) {
    fmapi::MldPortRecord data;
    data.event = event;
    data.port = model.ports[index].config.id;
    const auto log =
        event == fmapi::MldPortEvent::kCorrectable ? fmapi::EventLog::kWarning : fmapi::EventLog::kFailure;
    append_record(model.events, log, fmapi::kMldPortRecord, data);
}

}  // namespace memtide::emul

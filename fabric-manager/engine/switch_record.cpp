#include "fabric-manager/engine/switch_record.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "common/fmapi/commands/virtual_switch.h"

namespace memtide::fm {

namespace {

// The fields of a record fill its 80 bytes, so that decoding them cannot fail.
template <fmapi::Described Data>
Data data_of(const fmapi::EventRecord& record) {
    return fmapi::decode<Data>(std::as_bytes(std::span(record.data))).value_or(Data{});
}

std::string_view name_of(fmapi::EventLog log) {
    constexpr std::array<std::string_view, 4> kNames{"informational", "warning", "failure", "fatal"};
    const auto index = static_cast<std::size_t>(log);
    return index < kNames.size() ? kNames[index] : "unknown";
}

SwitchRecord describe_port(const fmapi::EventRecord& record) {
    const auto data = data_of<fmapi::PhysicalSwitchRecord>(record);
    if (data.event == fmapi::PhysicalSwitchEvent::kLinkStateChange)
        return {"link-change",
                data.negotiated_link_width == 0 ? fmt::format("the link of port {} is down", data.port)
                                                : fmt::format("the link of port {} is up, {} lanes wide",
                                                              data.port, data.negotiated_link_width),
                data.port};
    if (data.event == fmapi::PhysicalSwitchEvent::kSlotStatusUpdated) {
        const bool present = (data.slot_status & fmapi::kSlotPresent) != 0;
        return {"slot-change",
                fmt::format("the slot of port {} {}", data.port, present ? "holds a device" : "is empty"),
                data.port};
    }
    return {"unknown-record",
            fmt::format("port {}: event {:#04x}", data.port, static_cast<unsigned>(data.event)), data.port};
}

SwitchRecord describe_vppb(const fmapi::EventRecord& record) {
    const auto data = data_of<fmapi::VirtualSwitchRecord>(record);
    const std::string where = fmt::format("vPPB {} of VCS {}", data.vppb, data.vcs);
    switch (data.event) {
        case fmapi::VirtualSwitchEvent::kBindingChange:
            return {"binding-change",
                    data.binding == static_cast<std::uint8_t>(fmapi::VppbBinding::kUnbound)
                        ? where + " is bound to nothing"
                        : fmt::format("the binding of {} is {:#04x}, port {}, LD {}", where, data.binding,
                                      data.port, data.ld),
                    std::nullopt};
        case fmapi::VirtualSwitchEvent::kSecondaryBusReset:
            return {"bus-reset", "the host reset the bus behind " + where, std::nullopt};
        case fmapi::VirtualSwitchEvent::kLinkControlUpdated:
            return {"link-control",
                    fmt::format("the host set the link control of {} to {:#06x}", where, data.link_control),
                    std::nullopt};
        case fmapi::VirtualSwitchEvent::kSlotControlUpdated:
            return {"slot-control",
                    fmt::format("the host set the slot control of {} to {:#06x}", where, data.slot_control),
                    std::nullopt};
    }
    return {"unknown-record", fmt::format("{}: event {:#04x}", where, static_cast<unsigned>(data.event)),
            std::nullopt};
}

SwitchRecord describe_mld(const fmapi::EventRecord& record) {
    const auto data = data_of<fmapi::MldPortRecord>(record);
    constexpr std::array<std::string_view, 3> kErrors{"a correctable", "an uncorrectable, not fatal,",
                                                      "a fatal"};
    const auto index = static_cast<std::size_t>(data.event);
    if (index >= kErrors.size())
        return {"unknown-record", fmt::format("port {}: event {:#04x}", data.port, index), data.port};
    std::string bytes;
    for (const std::uint8_t byte : data.message) bytes += fmt::format("{:02x}", byte);
    return {"device-error",
            fmt::format("the device on port {} reports {} error ({})", data.port, kErrors[index], bytes),
            data.port};
}

}  // namespace

SwitchRecord describe_record(const fmapi::EventRecord& record, fmapi::EventLog log) {
    SwitchRecord described;
    if (record.format == fmapi::kPhysicalSwitchRecord)
        described = describe_port(record);
    else if (record.format == fmapi::kVirtualSwitchRecord)
        described = describe_vppb(record);
    else if (record.format == fmapi::kMldPortRecord)
        described = describe_mld(record);
    else
        described = {"unknown-record", "a record of a kind that is not known here", std::nullopt};
    described.detail += fmt::format(" ({} log)", name_of(log));
    return described;
}

bool is_known(const fmapi::EventRecord& record, fmapi::EventLog log, const Switch& known) {
    if (record.format != fmapi::kVirtualSwitchRecord || log != fmapi::EventLog::kInformational) return false;
    const auto data = data_of<fmapi::VirtualSwitchRecord>(record);
    if (data.event != fmapi::VirtualSwitchEvent::kBindingChange) return false;
    const auto vcs = std::ranges::find(known.vcss, data.vcs, &Vcs::id);
    if (vcs == known.vcss.end()) return false;
    const auto vppb = std::ranges::find(vcs->vppbs, data.vppb, &Vppb::id);
    if (vppb == vcs->vppbs.end()) return false;
    switch (static_cast<fmapi::VppbBinding>(data.binding)) {
        case fmapi::VppbBinding::kUnbound:
            return vppb->status == BindingStatus::kUnbound;
        case fmapi::VppbBinding::kInProgress:
            return true;  // its end has a record of its own
        case fmapi::VppbBinding::kBoundPort:
            return vppb->status == BindingStatus::kBoundPort && vppb->port == data.port;
        case fmapi::VppbBinding::kBoundLd:
            return vppb->status == BindingStatus::kBoundLd && vppb->port == data.port &&
                   vppb->ld == LdId{data.ld};
        case fmapi::VppbBinding::kBoundPid:
            return false;
    }
    return false;
}

}  // namespace memtide::fm

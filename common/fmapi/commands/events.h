#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "common/fmapi/command.h"

// Events command set (CXL 3.1, 8.2.9.2), which every component may have, and the records of a switch (7.6.8).
namespace memtide::fmapi {

enum class EventLog : std::uint8_t { kInformational = 0, kWarning = 1, kFailure = 2, kFatal = 3 };
inline constexpr std::array kEventLogs{EventLog::kInformational, EventLog::kWarning, EventLog::kFailure,
                                       EventLog::kFatal};
// The log's bit in interrupt settings and notifications.
constexpr std::uint16_t bit_of(EventLog log) {
    return static_cast<std::uint16_t>(1u << static_cast<unsigned>(log));
}

using Uuid = std::array<std::uint8_t, 16>;

// What EventRecord::data is, by EventRecord::format.
inline constexpr Uuid kPhysicalSwitchRecord{0x77, 0xcf, 0x92, 0x71, 0x9c, 0x02, 0x47, 0x0b,
                                            0x9f, 0xe4, 0xbc, 0x7b, 0x75, 0xf2, 0xda, 0x97};
inline constexpr Uuid kVirtualSwitchRecord{0x40, 0xd2, 0x64, 0x25, 0x33, 0x96, 0x4c, 0x4d,
                                           0xa5, 0xda, 0x3d, 0x47, 0x26, 0x3a, 0xf4, 0x25};
inline constexpr Uuid kMldPortRecord{0x8d, 0xc4, 0x43, 0x63, 0x0c, 0x96, 0x47, 0x10,
                                     0xb7, 0xbf, 0x04, 0xbb, 0x99, 0x53, 0x4c, 0x3f};

// CXL 3.1, table 8-42. Always 128 bytes on the wire, whatever its length says.
struct EventRecord {
    Uuid format{};
    std::uint8_t length = 128;  // valid bytes
    std::uint32_t flags = 0;    // [1:0] the log it is in, [2] permanent condition, [3] maintenance needed
    std::uint16_t handle = 0;   // names it within its log; never 0
    std::uint16_t related_handle = 0;
    std::uint64_t timestamp = 0;  // nanoseconds since 1970; 0 when the component has no clock
    std::uint8_t maintenance_class = 0;
    std::uint8_t maintenance_subclass = 0;
    std::array<std::uint8_t, 80> data{};

    static constexpr std::string_view kName = "event record";
    static constexpr std::size_t kWireSize = 128;
    static constexpr auto fields =
        std::tuple{field("format", &EventRecord::format),
                   field("length", &EventRecord::length),
                   field24("flags", &EventRecord::flags),
                   field("handle", &EventRecord::handle),
                   field("related_handle", &EventRecord::related_handle),
                   field("timestamp", &EventRecord::timestamp),
                   field("maintenance_class", &EventRecord::maintenance_class),
                   field("maintenance_subclass", &EventRecord::maintenance_subclass),
                   reserved(14),
                   field("data", &EventRecord::data)};
    friend bool operator==(const EventRecord&, const EventRecord&) = default;
};

struct GetEventRecordsRequest {
    EventLog log = EventLog::kInformational;

    static constexpr std::string_view kName = "Get Event Records request";
    static constexpr std::size_t kWireSize = 1;
    static constexpr auto fields = std::tuple{field("log", &GetEventRecordsRequest::log)};
    friend bool operator==(const GetEventRecordsRequest&, const GetEventRecordsRequest&) = default;
};

// Bits of GetEventRecordsResponse::flags.
inline constexpr std::uint8_t kEventsOverflow = 1u << 0;
inline constexpr std::uint8_t kMoreEvents = 1u << 1;

struct GetEventRecordsResponse {
    std::uint8_t flags = 0;
    std::uint16_t overflow_count = 0;  // records lost since the log was full
    std::uint64_t first_overflow = 0;  // timestamps of the first and the last of them
    std::uint64_t last_overflow = 0;
    std::vector<EventRecord> records;  // the oldest of the log first

    static constexpr std::string_view kName = "Get Event Records response";
    static constexpr std::size_t kWireSize = 32;
    static constexpr auto fields =
        std::tuple{field("flags", &GetEventRecordsResponse::flags),
                   reserved(1),
                   field("overflow_count", &GetEventRecordsResponse::overflow_count),
                   field("first_overflow", &GetEventRecordsResponse::first_overflow),
                   field("last_overflow", &GetEventRecordsResponse::last_overflow),
                   count<std::uint16_t>("record_count", &GetEventRecordsResponse::records),
                   reserved(10),
                   list<std::uint16_t>("records", &GetEventRecordsResponse::records)};
    friend bool operator==(const GetEventRecordsResponse&, const GetEventRecordsResponse&) = default;
};

inline constexpr std::uint8_t kClearAllEvents = 1u << 0;

struct ClearEventRecordsRequest {
    EventLog log = EventLog::kInformational;
    std::uint8_t flags = 0;              // kClearAllEvents
    std::vector<std::uint16_t> handles;  // of the oldest records, in their order

    static constexpr std::string_view kName = "Clear Event Records request";
    static constexpr std::size_t kWireSize = 6;
    static constexpr auto fields = std::tuple{
        field("log", &ClearEventRecordsRequest::log), field("flags", &ClearEventRecordsRequest::flags),
        count<std::uint8_t>("handle_count", &ClearEventRecordsRequest::handles), reserved(3),
        list<std::uint8_t>("handles", &ClearEventRecordsRequest::handles)};
    friend bool operator==(const ClearEventRecordsRequest&, const ClearEventRecordsRequest&) = default;
};

// How a log interrupts the host when it gets a record: bits of the settings.
inline constexpr std::uint8_t kInterruptModeMask = 0x03;  // 0 not at all, 1 MSI or MSI-X, 2 firmware
inline constexpr unsigned kInterruptMessageNumberShift =
    4;  // above it: which message, as in the MSI capability

// Response of Get Event Interrupt Policy and request of Set Event Interrupt Policy.
struct EventInterruptPolicy {
    std::uint8_t informational = 0;  // settings, as above
    std::uint8_t warning = 0;
    std::uint8_t failure = 0;
    std::uint8_t fatal = 0;
    std::uint8_t dynamic_capacity = 0;  // components older than CXL 3.0 do not have it

    static constexpr std::string_view kName = "event interrupt policy";
    static constexpr std::size_t kWireSize = 5;
    static constexpr auto fields = std::tuple{
        field("informational", &EventInterruptPolicy::informational),
        field("warning", &EventInterruptPolicy::warning), field("failure", &EventInterruptPolicy::failure),
        field("fatal", &EventInterruptPolicy::fatal),
        optional_tail(field("dynamic_capacity", &EventInterruptPolicy::dynamic_capacity))};
    friend bool operator==(const EventInterruptPolicy&, const EventInterruptPolicy&) = default;
};

// Which logs are notified of over MCTP when they get their first record: bits of bit_of(). Bit 15 is the end
// of a background operation.
struct MctpEventInterruptPolicy {
    std::uint16_t settings = 0;

    static constexpr std::string_view kName = "MCTP event interrupt policy";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields = std::tuple{field("settings", &MctpEventInterruptPolicy::settings)};
    friend bool operator==(const MctpEventInterruptPolicy&, const MctpEventInterruptPolicy&) = default;
};

// Older components answer nothing.
struct SetMctpEventInterruptPolicyResponse {
    std::uint16_t settings = 0;

    static constexpr std::string_view kName = "Set MCTP Event Interrupt Policy response";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields =
        std::tuple{optional_tail(field("settings", &SetMctpEventInterruptPolicyResponse::settings))};
    friend bool operator==(const SetMctpEventInterruptPolicyResponse&,
                           const SetMctpEventInterruptPolicyResponse&) = default;
};

// What a component sends of its own accord; nobody answers.
struct EventNotificationRequest {
    std::uint16_t events = 0;  // as the settings

    static constexpr std::string_view kName = "Event Notification request";
    static constexpr std::size_t kWireSize = 2;
    static constexpr auto fields = std::tuple{field("events", &EventNotificationRequest::events)};
    friend bool operator==(const EventNotificationRequest&, const EventNotificationRequest&) = default;
};

// --- Records of a switch: what EventRecord::data holds ---

enum class PhysicalSwitchEvent : std::uint8_t { kLinkStateChange = 0, kSlotStatusUpdated = 1 };

// Bits of the PCIe Slot Status register.
inline constexpr std::uint16_t kSlotPresenceDetectChanged = 1u << 3;
inline constexpr std::uint16_t kSlotPresent = 1u << 6;

// CXL 3.1, table 7-92: the port's state right after the event.
struct PhysicalSwitchRecord {
    std::uint8_t port = 0;
    PhysicalSwitchEvent event = PhysicalSwitchEvent::kLinkStateChange;
    std::uint16_t slot_status = 0;
    std::uint8_t config_state = 0;  // as in Get Physical Port State, like what follows
    std::uint8_t device_mode = 0;
    std::uint8_t device_type = 0;
    std::uint8_t supported_cxl_modes = 0;
    std::uint8_t max_link_width = 0;
    std::uint8_t negotiated_link_width = 0;  // 0 when the link is down
    std::uint8_t supported_link_speeds = 0;
    std::uint8_t max_link_speed = 0;
    std::uint8_t current_link_speed = 0;
    std::uint8_t ltssm_state = 0;
    std::uint8_t first_lane = 0;
    std::uint16_t link_flags = 0;

    static constexpr std::string_view kName = "physical switch event record";
    static constexpr std::size_t kWireSize = 80;
    static constexpr auto fields =
        std::tuple{field("port", &PhysicalSwitchRecord::port),
                   field("event", &PhysicalSwitchRecord::event),
                   field("slot_status", &PhysicalSwitchRecord::slot_status),
                   reserved(1),
                   field("config_state", &PhysicalSwitchRecord::config_state),
                   field("device_mode", &PhysicalSwitchRecord::device_mode),
                   reserved(1),
                   field("device_type", &PhysicalSwitchRecord::device_type),
                   field("supported_cxl_modes", &PhysicalSwitchRecord::supported_cxl_modes),
                   field("max_link_width", &PhysicalSwitchRecord::max_link_width),
                   field("negotiated_link_width", &PhysicalSwitchRecord::negotiated_link_width),
                   field("supported_link_speeds", &PhysicalSwitchRecord::supported_link_speeds),
                   field("max_link_speed", &PhysicalSwitchRecord::max_link_speed),
                   field("current_link_speed", &PhysicalSwitchRecord::current_link_speed),
                   field("ltssm_state", &PhysicalSwitchRecord::ltssm_state),
                   field("first_lane", &PhysicalSwitchRecord::first_lane),
                   field("link_flags", &PhysicalSwitchRecord::link_flags),
                   reserved(61)};
    friend bool operator==(const PhysicalSwitchRecord&, const PhysicalSwitchRecord&) = default;
};

enum class VirtualSwitchEvent : std::uint8_t {
    kBindingChange = 0,
    kSecondaryBusReset = 1,
    kLinkControlUpdated = 2,
    kSlotControlUpdated = 3,
};

// CXL 3.1, table 7-93: the vPPB right after the event.
struct VirtualSwitchRecord {
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
    VirtualSwitchEvent event = VirtualSwitchEvent::kBindingChange;
    std::uint8_t binding = 0;  // as in Get Virtual CXL Switch Info
    std::uint8_t port = 0;
    std::uint8_t ld = 0;
    std::uint16_t link_control = 0;
    std::uint16_t slot_control = 0;

    static constexpr std::string_view kName = "virtual switch event record";
    static constexpr std::size_t kWireSize = 80;
    static constexpr auto fields = std::tuple{field("vcs", &VirtualSwitchRecord::vcs),
                                              field("vppb", &VirtualSwitchRecord::vppb),
                                              field("event", &VirtualSwitchRecord::event),
                                              field("binding", &VirtualSwitchRecord::binding),
                                              field("port", &VirtualSwitchRecord::port),
                                              field("ld", &VirtualSwitchRecord::ld),
                                              field("link_control", &VirtualSwitchRecord::link_control),
                                              field("slot_control", &VirtualSwitchRecord::slot_control),
                                              reserved(70)};
    friend bool operator==(const VirtualSwitchRecord&, const VirtualSwitchRecord&) = default;
};

enum class MldPortEvent : std::uint8_t { kCorrectable = 0, kNonFatal = 1, kFatal = 2 };

// CXL 3.1, table 7-94: a PCIe error message that the switch received from an MLD.
struct MldPortRecord {
    MldPortEvent event = MldPortEvent::kCorrectable;
    std::uint8_t port = 0;
    std::array<std::uint8_t, 8> message{};  // its first bytes

    static constexpr std::string_view kName = "MLD port event record";
    static constexpr std::size_t kWireSize = 80;
    static constexpr auto fields =
        std::tuple{field("event", &MldPortRecord::event), field("port", &MldPortRecord::port), reserved(2),
                   field("message", &MldPortRecord::message), reserved(68)};
    friend bool operator==(const MldPortRecord&, const MldPortRecord&) = default;
};

using GetEventRecords = Command<Opcode::kGetEventRecords, "Get Event Records", GetEventRecordsRequest,
                                GetEventRecordsResponse, kRepeatable>;
using ClearEventRecords =
    Command<Opcode::kClearEventRecords, "Clear Event Records", ClearEventRecordsRequest, NoPayload>;
using GetEventInterruptPolicy = Command<Opcode::kGetEventInterruptPolicy, "Get Event Interrupt Policy",
                                        NoPayload, EventInterruptPolicy, kRepeatable>;
using SetEventInterruptPolicy = Command<Opcode::kSetEventInterruptPolicy, "Set Event Interrupt Policy",
                                        EventInterruptPolicy, NoPayload, kRepeatable>;
using GetMctpEventInterruptPolicy =
    Command<Opcode::kGetMctpEventInterruptPolicy, "Get MCTP Event Interrupt Policy", NoPayload,
            MctpEventInterruptPolicy, kRepeatable>;
using SetMctpEventInterruptPolicy =
    Command<Opcode::kSetMctpEventInterruptPolicy, "Set MCTP Event Interrupt Policy", MctpEventInterruptPolicy,
            SetMctpEventInterruptPolicyResponse, kRepeatable>;
using EventNotification =
    Command<Opcode::kEventNotification, "Event Notification", EventNotificationRequest, NoPayload>;

}  // namespace memtide::fmapi

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/fmapi/commands/events.h"
#include "fabric-manager/model/fabric.h"

namespace memtide::fm {

// An event record of a switch, for people and programs.
struct SwitchRecord {
    std::string code;    // link-change, slot-change, binding-change, ..., unknown-record
    std::string detail;  // a sentence
    std::optional<std::uint8_t> port;
};

// Says what the record of that log says. Pure; any bytes will do.
SwitchRecord describe_record(const fmapi::EventRecord& record, fmapi::EventLog log);

// Whether the record says nothing that is not known of the switch: a binding that went well, of which the
// inventory says the same. Most of these are the manager's own doing.
bool is_known(const fmapi::EventRecord& record, fmapi::EventLog log, const Switch& known);

}  // namespace memtide::fm

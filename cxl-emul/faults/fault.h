#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/fmapi/commands/events.h"
#include "common/fmapi/opcode.h"
#include "common/fmapi/return_code.h"

// A fault on demand as plain data: what goes wrong, of what, when and how often. docs/faults.md has the
// table.
namespace memtide::emul {

enum class FaultKind : std::uint8_t {
    // links and power
    kLinkDown,
    kSurpriseRemoval,
    kPowerCycle,
    // background operations
    kSlowOperation,
    kStuckOperation,
    kFailingOperation,
    kEraseDoesNothing,
    // what a device says of itself
    kWorn,
    kFailing,
    kMediaError,
    kPoison,
    kLyingDevice,
    // answers
    kError,
    kSilence,
    kLate,
    kDrip,
    kCorrupt,
    kTruncate,
    kReorder,
    kDuplicate,
    kWrongTag,
    kHangUp,
};
inline constexpr std::size_t kFaultKinds = 22;

enum class OperationKind : std::uint8_t { kBind, kUnbind, kSanitize };

// Members that a kind does not have keep their defaults; fault_table.h says which has which.
struct Fault {
    FaultKind kind = FaultKind::kLinkDown;

    // Of what. A switch need not be named where there is only one.
    std::optional<SwitchId> switch_name;
    std::optional<std::uint8_t> port;
    std::optional<DeviceId> device;
    std::optional<HostId> host;

    // How long it lasts once it has begun; nothing: until it is cleared.
    std::optional<std::chrono::milliseconds> lasts;
    // Of what it could strike it leaves out the first `skip`, then strikes each with this probability, and is
    // over when it has struck so many times.
    std::uint64_t skip = 0;
    double probability = 1;
    std::optional<std::uint64_t> times;
    // Of its random draws; a scenario gives one to those that draw and have none.
    std::optional<std::uint64_t> seed;

    // How.
    std::optional<fmapi::Opcode> opcode;  // nothing: every command
    fmapi::ReturnCode code = fmapi::ReturnCode::kInternalError;
    std::chrono::milliseconds delay{0};
    std::uint32_t bytes = 0;                 // 0: drawn
    std::optional<OperationKind> operation;  // nothing: any
    bool keeps_state = false;
    fmapi::MldPortEvent severity = fmapi::MldPortEvent::kNonFatal;
    std::optional<std::uint8_t> ld;
    Bytes offset;
    Bytes length;
    std::optional<SerialNumber> serial;
    std::optional<std::uint8_t> lds;
    std::optional<Bytes> ld_size;
    std::optional<Bytes> capacity;

    friend bool operator==(const Fault&, const Fault&) = default;
};

}  // namespace memtide::emul

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::fmapi {

// Command return codes (CXL 3.1, table 8-37). Any 16-bit value may arrive from a peer.
enum class ReturnCode : std::uint16_t {
    kSuccess = 0x0000,
    kBackgroundStarted = 0x0001,
    kInvalidInput = 0x0002,
    kUnsupported = 0x0003,
    kInternalError = 0x0004,
    kRetryRequired = 0x0005,
    kBusy = 0x0006,
    kMediaDisabled = 0x0007,
    kFirmwareTransferInProgress = 0x0008,
    kFirmwareTransferOutOfOrder = 0x0009,
    kFirmwareAuthenticationFailed = 0x000a,
    kInvalidSlot = 0x000b,
    kActivationFailedRolledBack = 0x000c,
    kActivationFailedColdResetRequired = 0x000d,
    kInvalidHandle = 0x000e,
    kInvalidPhysicalAddress = 0x000f,
    kInjectPoisonLimitReached = 0x0010,
    kPermanentMediaFailure = 0x0011,
    kAborted = 0x0012,
    kInvalidSecurityState = 0x0013,
    kIncorrectPassphrase = 0x0014,
    kUnsupportedMailbox = 0x0015,
    kInvalidPayloadLength = 0x0016,
    kInvalidLog = 0x0017,
    kInterrupted = 0x0018,
    kUnsupportedFeatureVersion = 0x0019,
    kUnsupportedFeatureSelection = 0x001a,
    kFeatureTransferInProgress = 0x001b,
    kFeatureTransferOutOfOrder = 0x001c,
    kResourcesExhausted = 0x001d,
    kInvalidExtentList = 0x001e,
};

// "Busy (0006h)"; "unknown return code (1234h)" when it has no name.
std::string to_string(ReturnCode code);
std::string_view name_of(ReturnCode code);

// What a return code means to the caller of a command: busy or retry -> kConflict, bad input ->
// kInvalidArgument, exhausted -> kExhausted, media or device trouble -> kIo, unsupported -> kInvalidArgument,
// unknown -> kProtocol. Call it with failures only; kSuccess and kBackgroundStarted give kInternal.
ErrorCode error_code_of(ReturnCode code);

}  // namespace memtide::fmapi

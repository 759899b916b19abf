#pragma once

#include "common/base/error.h"

namespace memtide::fm {

// Whether trying the very same again can help.
inline bool is_passing(const Error& error) {
    switch (error.code) {
        case ErrorCode::kUnavailable:
        case ErrorCode::kTimeout:
        case ErrorCode::kProtocol:
        case ErrorCode::kConflict:
        case ErrorCode::kCancelled:
            return true;
        default:
            return false;
    }
}

// Refusals that a device may take back get a few attempts, a refused argument does not.
inline constexpr int kAttempts = 3;
inline bool is_final(const Error& error, int failures) {
    if (is_passing(error)) return false;
    return error.code == ErrorCode::kInvalidArgument || failures >= kAttempts;
}

// A device that calls a carve invalid may do so because it is not as it was when it was read last.
inline bool is_final_for_carve(const Error& error, int failures) {
    return !is_passing(error) && failures >= kAttempts;
}

}  // namespace memtide::fm

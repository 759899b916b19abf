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

// Refusals that a device may take back get a few attempts. So does what it calls invalid: it may not be as,
// or where, it was when it was read last.
inline constexpr int kAttempts = 3;
inline bool is_final(const Error& error, int failures) { return !is_passing(error) && failures >= kAttempts; }

// Whether the switch has to be read before anything is decided: whether it was carried out is not known, or
// what was asked for does not fit what is there.
inline bool calls_for_a_look(const Error& error) {
    return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
           error.code == ErrorCode::kProtocol || error.code == ErrorCode::kInvalidArgument;
}

}  // namespace memtide::fm

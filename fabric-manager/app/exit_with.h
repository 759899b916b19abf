#pragma once

#include <cstdio>

#include <fmt/format.h>

#include "common/base/error.h"
#include "common/daemon/exit_code.h"

namespace memtide::fm {

// Says what went wrong; the exit code for it.
inline int exit_with(const Error& error) {
    fmt::print(stderr, "memtide-fabric-manager: {}\n", error.message);
    return error.code == ErrorCode::kInvalidArgument ? daemon::kExitUsage : daemon::kExitFailure;
}

}  // namespace memtide::fm

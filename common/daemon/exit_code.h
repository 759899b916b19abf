#pragma once

namespace memtide::daemon {

// Exit codes of every daemon and of the CLI.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;  // bad usage or config

}  // namespace memtide::daemon

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tests/crash/scenarios.h"

namespace memtide::fm::crash {

// Shared between the process that watches and the one that lives: it must tell what survives its death.
struct Witness {
    std::atomic<int> points{0};                 // sync points passed in this life
    std::atomic<std::uint64_t> log_synced{0};   // bytes of the newest segment of the log that are on the disk
    std::atomic<std::uint64_t> wal_created{0};  // bytes of SQLite's WAL when the first group came
    char at[64] = {};                           // name of the point at which it was killed
};

enum class Death { kNone, kKilled };

struct LifeResult {
    Death death = Death::kNone;
    std::string wrong;  // of a life that ended by itself; empty when all is well
};

// Lives one life of the scenario in a child process, which kills itself with SIGKILL when it passes the sync
// point of that number (0: none): each journal write and each effect of the engine, and each step by which
// the store makes a group durable.
LifeResult live(const Scenario& scenario, const std::string& folder, std::uint64_t seed, int kill_at,
                Witness& witness);

}  // namespace memtide::fm::crash

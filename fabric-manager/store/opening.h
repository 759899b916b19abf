#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "fabric-manager/store/database.h"
#include "fabric-manager/store/entry_log.h"
#include "fabric-manager/store/files.h"
#include "fabric-manager/store/state_lock.h"
#include "fabric-manager/store/store.h"

// How a state file is opened: checked, migrated, brought up from its log, or made anew from snapshot and log.
namespace memtide::fm {

struct OpenState {
    std::optional<StateLock> lock;  // outlives the database; nothing for ":memory:"
    std::unique_ptr<Database> database;
    std::optional<EntryLog> log;
    bool has_snapshot = false;             // of this generation
    std::string damage;                    // of snapshot or log, while the database is good
    std::optional<std::string> recovered;  // a sentence: what was wrong, and what was done
};

// As open_sqlite_store(), for a path that is a file.
Result<OpenState> open_state(const SqliteOptions& options);

// Opens a connection with the settings of the store; creates the file when it is missing.
Result<std::unique_ptr<Database>> open_connection(const SqliteOptions& options);

// Carries the entries of the log up to `last` out in the database, in one transaction.
Result<> replay(Database& database, const LogScan& scan, std::uint64_t last);

// Gives database and log a history of their own from `entry` on: segments from before do not belong to it any
// more, and no snapshot does yet.
Result<EntryLog> begin_generation(Database& database, const StatePaths& paths, std::uint64_t entry,
                                  EntryLog::Fault fault);

}  // namespace memtide::fm
